// Loops over threads. An item writes only what is its own, so the result does not depend on the
// number of threads.
//
//   threads at work in all loops together <= thread limit
//
// so loops may be nested: an inner loop takes the threads that are free, from none to all, and more
// as others end. A thread only ever works on its own loop: an item never runs inside another's.
// Items start in the order of their indices. After one throws, no further item starts, and what the
// one with the smallest index threw is thrown on: always the same.
//
// Threads are started and joined by the standard library alone, which thread sanitizers understand;
// starting one costs some 20 us, so an item should take longer than that.
#pragma once

#include <cstddef>
#include <functional>

namespace mllmsim {

// Calls body(i) for each i < count.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

// The same with a body per thread, which may keep what it must not share: make_body() is called by
// each thread that takes part, at the same time.
void parallel_for(std::size_t count,
                  const std::function<std::function<void(std::size_t)>()>& make_body);

// How many threads may be at work: as many as this process has cores, unless a ThreadLimit lives.
std::size_t thread_limit();

// At most so many threads as long as it lives. One at a time, made while no loop runs.
class ThreadLimit {
 public:
  explicit ThreadLimit(std::size_t threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  std::size_t before_;
};

}  // namespace mllmsim
