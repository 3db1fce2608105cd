// Orders against Megatron's, written out by hand for the smallest interesting pipelines.
#include "sim/kernel/schedule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>

namespace mllmsim {
namespace {

// "F0 F1 B0 ..."; with chunks "F0.1" is micro-batch 0 through chunk 1.
std::string text(const std::vector<Pass>& order, bool with_chunks) {
  std::string out;
  for (const Pass& p : order) {
    out += (out.empty() ? "" : " ") + std::string(p.forward ? "F" : "B") +
           std::to_string(p.micro_batch);
    if (with_chunks) out += "." + std::to_string(p.chunk);
  }
  return out;
}

TEST(Schedule, OneForwardOneBackwardWarmsUpWithTheRanksBehindIt) {
  EXPECT_EQ(text(schedule(ScheduleKind::one_f_one_b, 3, 1, 4, 0), false),
            "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(schedule(ScheduleKind::one_f_one_b, 3, 1, 4, 2), false),
            "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, FewMicroBatchesAreAllWarmup) {
  EXPECT_EQ(text(schedule(ScheduleKind::one_f_one_b, 8, 1, 2, 0), false), "F0 F1 B0 B1");
}

// p = 2, v = 2, m = 2, last rank: warm-up (v - 1)p = 2 forwards, then alternate.
TEST(Schedule, InterleavedGoesThroughChunksInGroupsOfRanks) {
  EXPECT_EQ(text(schedule(ScheduleKind::interleaved, 2, 2, 2, 1), true),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
  // Rank 0 warms up 2(p - 1) + (v - 1)p = 4 forwards: all of them.
  EXPECT_EQ(text(schedule(ScheduleKind::interleaved, 2, 2, 2, 0), true),
            "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
}

// Megatron's own example of 5 micro-batches in groups of 3: p = 2, v = 2, last rank: warm-up
// (v - 1) * 3, the last group has two.
TEST(Schedule, GroupsMayBeLargerThanTheRanks) {
  EXPECT_EQ(text(schedule(ScheduleKind::interleaved, 2, 2, 5, 1, 3), true),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.0 B0.0 F4.0 B1.0 F3.1 B2.0 F4.1 B3.1 "
            "B4.1 B3.0 B4.0");
}

TEST(Schedule, AccumulationRunsMicroBatchesInTurn) {
  EXPECT_EQ(text(schedule(ScheduleKind::accumulate, 1, 1, 2, 0), false), "F0 B0 F1 B1");
}

TEST(Schedule, EveryPassRunsOnceAndForwardBeforeBackward) {
  EXPECT_TRUE(rc::check([] {
    const int p = *rc::gen::inRange(2, 9), v = *rc::gen::inRange(1, 5);
    const int g = *rc::gen::inRange(p, 2 * p + 1), rank = *rc::gen::inRange(0, p);
    const int m = g * *rc::gen::inRange(1, 5) + *rc::gen::elementOf(std::vector{0, p % g});
    const auto kind = v > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
    std::set<Pass> seen;
    for (const Pass& pass : schedule(kind, p, v, m, rank, g)) {
      RC_ASSERT(seen.insert(pass).second);
      if (!pass.forward) RC_ASSERT(seen.contains({true, pass.micro_batch, pass.chunk}));
    }
    RC_ASSERT(seen.size() == static_cast<std::size_t>(2 * m * v));
  }));
}

}  // namespace
}  // namespace mllmsim
