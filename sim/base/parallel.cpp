#include "sim/base/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>

namespace mllmsim {
namespace {

using Body = std::function<void(std::size_t)>;
using MakeBody = std::function<Body()>;

// Cores that this process may run on: of a batch job often fewer than there are.
std::size_t cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

// The threads of this process that may work but do not. The main thread is at work from the start.
struct Threads {
  std::size_t limit = cores();
  std::atomic<std::ptrdiff_t> free = static_cast<std::ptrdiff_t>(limit) - 1;

  bool take() {
    std::ptrdiff_t now = free;
    while (now > 0)
      if (free.compare_exchange_weak(now, now - 1)) return true;
    return false;
  }
  void limit_to(std::size_t threads) {
    free += static_cast<std::ptrdiff_t>(threads) - static_cast<std::ptrdiff_t>(limit);
    limit = threads;
  }
};

Threads& threads() {
  static Threads all;
  return all;
}

class Loop {
 public:
  Loop(std::size_t count, const MakeBody& make_body) : count_(count), make_body_(make_body) {}

  void run() {
    work();
    // Workers may start others while they are joined; the last has nothing left to start one for.
    for (std::size_t i = 0; std::thread* worker = worker_at(i); ++i) worker->join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    std::size_t i = next_++;
    if (i >= count_) return;
    try {
      const Body body = make_body_();
      for (; i < count_ && i < failed_at_; i = next_++) {
        if (i + 1 < count_) add_worker();
        body(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (i > failed_at_) return;
      failure_ = std::current_exception();
      failed_at_ = i;
    }
  }

  void add_worker() {
    if (!threads().take()) return;
    const std::lock_guard lock(mutex_);
    try {
      workers_.emplace_back([this] {
        work();
        ++threads().free;
      });
    } catch (const std::system_error&) {  // no more threads to be had: those there are will do
      ++threads().free;
    }
  }

  std::thread* worker_at(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return i < workers_.size() ? &workers_[i] : nullptr;
  }

  const std::size_t count_;
  const MakeBody& make_body_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> failed_at_ = std::numeric_limits<std::size_t>::max();
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::deque<std::thread> workers_;
};

}  // namespace

void parallel_for(std::size_t count, const Body& body) {
  parallel_for(count, [&]() -> Body { return [&](std::size_t i) { body(i); }; });
}

void parallel_for(std::size_t count, const MakeBody& make_body) { Loop(count, make_body).run(); }

std::size_t thread_limit() { return threads().limit; }

ThreadLimit::ThreadLimit(std::size_t limit) : before_(thread_limit()) { threads().limit_to(limit); }

ThreadLimit::~ThreadLimit() { threads().limit_to(before_); }

}  // namespace mllmsim
