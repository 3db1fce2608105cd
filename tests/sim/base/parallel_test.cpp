#include "sim/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mllmsim {
namespace {

TEST(ParallelFor, CallsEachItemOnce) {
  const ThreadLimit four(4);
  std::vector<int> calls(1000);
  parallel_for(calls.size(), [&](std::size_t i) { ++calls[i]; });
  EXPECT_EQ(calls, std::vector<int>(1000, 1));
}

TEST(ParallelFor, NothingToDo) {
  parallel_for(0, [](std::size_t) { FAIL(); });
}

// Three items that each wait until all three are there need three threads.
TEST(ParallelFor, UsesAsManyThreadsAsTheLimit) {
  const ThreadLimit three(3);
  std::barrier all(3);
  parallel_for(3, [&](std::size_t) { all.arrive_and_wait(); });
}

TEST(ParallelFor, OneThreadWorksInOrder) {
  const ThreadLimit one(1);
  std::vector<std::size_t> order;
  const auto self = std::this_thread::get_id();
  parallel_for(5, [&](std::size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

// Eight items with loops of eight items each: never more than three items at work.
TEST(ParallelFor, NestedLoopsShareTheLimit) {
  const ThreadLimit three(3);
  std::atomic<int> working = 0, most = 0, items = 0;
  parallel_for(8, [&](std::size_t) {
    parallel_for(8, [&](std::size_t) {
      const int now = ++working;
      int before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      std::this_thread::yield();
      ++items;
      --working;
    });
  });
  EXPECT_EQ(items, 64);
  EXPECT_LE(most, 3);
}

// The outer loop has one item, so its inner loop gets the second thread.
TEST(ParallelFor, AnInnerLoopTakesTheFreeThreads) {
  const ThreadLimit two(2);
  std::barrier both(2);
  parallel_for(1,
               [&](std::size_t) { parallel_for(2, [&](std::size_t) { both.arrive_and_wait(); }); });
}

// Items 3, 5, 7 ... throw. Items start in order and those before a failing one end, so 3 is always
// among those that throw.
TEST(ParallelFor, ThrowsWhatTheFirstItemThrew) {
  const ThreadLimit four(4);
  for (int repeated = 0; repeated < 50; ++repeated) {
    std::string said;
    try {
      parallel_for(100, [&](std::size_t i) {
        if (i >= 3 && i % 2 == 1) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    ASSERT_EQ(said, "3");
  }
}

TEST(ParallelFor, StartsNothingAfterAFailure) {
  const ThreadLimit one(1);
  std::size_t last = 0;
  EXPECT_THROW(parallel_for(100,
                            [&](std::size_t i) {
                              last = i;
                              if (i == 3) throw std::runtime_error("");
                            }),
               std::runtime_error);
  EXPECT_EQ(last, 3U);
}

// Each thread sums what it took; together that is 0 + 1 + ... + 99 = 4950.
TEST(ParallelFor, GivesEachThreadABodyOfItsOwn) {
  const ThreadLimit four(4);
  std::vector<std::size_t> sums(4);
  std::atomic<std::size_t> bodies = 0;
  parallel_for(100, [&]() -> std::function<void(std::size_t)> {
    const std::size_t own = bodies++;
    return [&sums, own](std::size_t i) { sums.at(own) += i; };
  });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::size_t{0}), 4950U);
}

TEST(ThreadLimit, EndsWithItsLife) {
  const std::size_t before = thread_limit();
  {
    const ThreadLimit limit(7);
    EXPECT_EQ(thread_limit(), 7U);
  }
  EXPECT_EQ(thread_limit(), before);
}

}  // namespace
}  // namespace mllmsim
