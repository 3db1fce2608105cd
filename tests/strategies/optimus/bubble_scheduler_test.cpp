// The bubble scheduler on hand-drawn timelines: which encoder kernel goes before which LLM kernel.
// Times are microseconds.
#include "strategies/optimus/bubble_scheduler.hpp"

#include <gtest/gtest.h>

namespace mllmsim::optimus {
namespace {

constexpr Time us(std::int64_t n) { return Time{1000 * n}; }

EncoderWork::Kernel compute(std::int64_t n, std::int64_t beside_collective) {
  return {us(n), us(beside_collective), false, 0};
}
EncoderWork::Kernel collective(std::int64_t n) { return {us(n), us(n), true, 0}; }

// One lane, encoders of one stage and one layer, nothing to gather, send or reduce.
EncoderWork work_of(std::uint32_t micro_batches, std::vector<EncoderWork::Kernel> forward,
                    std::vector<EncoderWork::Kernel> backward, int groups = 1) {
  EncoderWork work;
  work.groups = groups;
  work.micro_batches = micro_batches;
  work.kinds.assign(micro_batches, 0);
  work.has_backward = {!backward.empty()};
  work.forward = {{std::move(forward)}};
  work.backward = {{std::move(backward)}};
  work.hops = {us(0)};
  work.to_llm.assign(static_cast<std::size_t>(groups), us(0));
  work.gathered = {{us(0)}};
  work.reductions = {{}};
  return work;
}

struct Slot {
  std::uint32_t pass, llm_pass, llm_kernel, kernels;
  bool operator==(const Slot&) const = default;
};
std::vector<Slot> slots(const EncoderRank& rank) {
  std::vector<Slot> out;
  for (const EncoderSlot& s : rank.slots)
    out.push_back({s.pass, s.llm_pass, s.llm_kernel, s.kernels});
  return out;
}

// The LLM alone, one kernel per pass, two bubbles:
//
//   0      10      16      26       40      60      66      86
//   | F0   |  ...  |  F1   |  ....  |  B0   |  ...  |  B1   |
//
// rank() lists the passes; every gap between them is free.
RankTimeline rank(std::vector<std::pair<std::int64_t, std::int64_t>> passes) {
  RankTimeline out;
  out.passes = static_cast<std::uint32_t>(passes.size());
  out.first_start = us(passes.front().first);
  out.last_end = us(passes.back().second);
  Time free = -kAlways;
  for (std::uint32_t p = 0; p < passes.size(); ++p) {
    out.kernels.push_back({us(passes[p].first), us(passes[p].second), p, 0});
    if (us(passes[p].first) > free) out.compute.push_back({free, us(passes[p].first)});
    free = us(passes[p].second);
  }
  out.compute.push_back({free, kAlways});
  out.tp = {{-kAlways, kAlways}};
  return out;
}
LlmTimeline two_bubbles() {
  LlmTimeline llm;
  llm.ranks = {rank({{0, 10}, {16, 26}, {40, 60}, {66, 86}})};
  llm.forward_start = {us(0), us(16)};
  llm.backward_end = {us(60), us(86)};
  llm.span = us(86);
  return llm;
}

// Wave 0 (3 + 3) has to arrive by F0, so the step starts 6 earlier. Wave 1 fits between F0 and F1
// and arrives when F1 starts. Backwards of 5: that of wave 0 fits between B0 and B1, that of wave 1
// comes after all and ends at 91.
TEST(BubbleScheduler, FineFillsTheBubbles) {
  const EncoderWork work = work_of(2, {compute(3, 3), compute(3, 3)}, {compute(5, 5)});
  const BubbleSchedule s = schedule_encoders(work, two_bubbles(), Placement::fine, 2, true);
  EXPECT_EQ(s.estimate, us(6 + 91));
  EXPECT_EQ(slots(s.ranks[0]), (std::vector<Slot>{{0, 0, 0, 2},    // forward 0 before F0
                                                  {1, 1, 0, 2},    // forward 1 before F1
                                                  {2, 3, 0, 1},    // backward 0 before B1
                                                  {3, 4, 0, 1}}))  // backward 1 after all
      << "pass, LLM pass, LLM kernel, kernels";
}

// Both waves before F0: 12 earlier. Both backwards behind B1: 86 + 10.
TEST(BubbleScheduler, CoarseStaysOutsideTheLlm) {
  const EncoderWork work = work_of(2, {compute(3, 3), compute(3, 3)}, {compute(5, 5)});
  const BubbleSchedule s = schedule_encoders(work, two_bubbles(), Placement::coarse, 2, true);
  EXPECT_EQ(s.estimate, us(12 + 96));
  EXPECT_EQ(slots(s.ranks[0]),
            (std::vector<Slot>{{0, 0, 0, 2}, {1, 0, 0, 2}, {2, 4, 0, 1}, {3, 4, 0, 1}}));
}

// A bubble of 6 holds two kernels of 3 but no kernel of 7: that one waits for the next gap, after
// F1, too late for F1. So wave 1 goes before F0 as well.
TEST(BubbleScheduler, AKernelGoesWholeIntoOneBubble) {
  const EncoderWork work = work_of(2, {compute(7, 7)}, {});
  const BubbleSchedule s = schedule_encoders(work, two_bubbles(), Placement::fine, 2, true);
  EXPECT_EQ(slots(s.ranks[0]), (std::vector<Slot>{{0, 0, 0, 1}, {1, 0, 0, 1}}));
}

// F0 is two kernels with a collective of the LLM between them, F1 starts at 36:
//
//   compute  | F0.0 |tp bubble| F0.2 |           | F1 |
//   tp              |  F0.1   |
//            0      10        16     26          36   46
//
// An encoder kernel of 3 takes 4 beside a collective. Wave 1: its first kernel fits the tp bubble,
// its collective waits for the LLM's (16: under F0.2), its last kernel for F0.2 (26).
TEST(BubbleScheduler, CollectivesGoUnderComputationAndComputationIntoTpBubbles) {
  LlmTimeline llm;
  RankTimeline& r = llm.ranks.emplace_back();
  r.kernels = {
      {us(0), us(6), 0, 0}, {us(10), us(16), 0, 1}, {us(16), us(26), 0, 2}, {us(36), us(46), 1, 0}};
  r.compute = {{-kAlways, us(0)}, {us(10), us(16), true}, {us(26), us(36)}, {us(46), kAlways}};
  r.tp = {{-kAlways, us(10)}, {us(16), kAlways}};
  r.last_end = us(46);
  r.passes = 2;
  llm.forward_start = {us(0), us(36)};
  llm.backward_end = {us(46), us(46)};
  llm.span = us(46);
  const EncoderWork work = work_of(2, {compute(3, 4), collective(2), compute(3, 4)}, {});
  const BubbleSchedule s = schedule_encoders(work, llm, Placement::fine, 2, true);
  EXPECT_EQ(s.estimate, us(8 + 46));  // 3 + 2 + 3 before F0
  EXPECT_EQ(slots(s.ranks[0]),
            (std::vector<Slot>{{0, 0, 0, 3}, {1, 0, 1, 1}, {1, 0, 2, 1}, {1, 1, 0, 1}}));
}

// Two ranks, each a group. Group 1 is 1 away from the LLM. Wave 0 arrives first from group 0 (6
// against 7), wave 1 then from group 1 (7 against 12).
TEST(BubbleScheduler, WavesGoToTheGroupThatFinishesThemFirst) {
  LlmTimeline llm;
  llm.ranks = {rank({{0, 10}, {12, 22}}), rank({{10, 20}, {22, 32}})};
  llm.forward_start = {us(0), us(12)};
  llm.backward_end = {us(40), us(50)};
  llm.span = us(50);
  EncoderWork work = work_of(2, {compute(6, 6)}, {}, 2);
  work.to_llm = {us(0), us(1)};
  const BubbleSchedule s = schedule_encoders(work, llm, Placement::coarse, 1, true);
  EXPECT_EQ(s.waves[0].group, 0U);
  EXPECT_EQ(s.waves[1].group, 1U);
  EXPECT_EQ(s.estimate, us(6 + 50));
}

// The layer's parameters are there 4 after the start: the forward of 3 ends 7 after it. The start
// is searched to 1/2000 of the LLM's step: 43 ns.
TEST(BubbleScheduler, ForwardsWaitForTheirParameters) {
  EncoderWork work = work_of(2, {compute(3, 3)}, {});
  work.gathered = {{us(4)}};
  const BubbleSchedule s = schedule_encoders(work, two_bubbles(), Placement::fine, 2, true);
  EXPECT_NEAR(static_cast<double>(s.estimate.value), 93'000, 43);
}

// The last backward ends at 91 (as above); reducing its bucket takes 9.
TEST(BubbleScheduler, TheStepEndsWhenGradientsAreReduced) {
  EncoderWork work = work_of(2, {compute(3, 3), compute(3, 3)}, {compute(5, 5)});
  work.reductions = {{{0, 1, us(9)}}};
  const BubbleSchedule s = schedule_encoders(work, two_bubbles(), Placement::fine, 2, true);
  EXPECT_EQ(s.estimate, us(6 + 91 + 9));
}

}  // namespace
}  // namespace mllmsim::optimus
