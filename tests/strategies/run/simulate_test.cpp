// The door: jobs small enough that their outcome is derived by hand.
#include "strategies/run/simulate.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "tests/cost_models/layer_fakes.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {
namespace {

constexpr auto kWarmup = static_cast<std::size_t>(BubbleKind::pp_warmup);
constexpr auto kCooldown = static_cast<std::size_t>(BubbleKind::pp_cooldown);
constexpr auto kOther = static_cast<std::size_t>(BubbleKind::pp_other);

// Two stages, four micro-batches, forward 1 s, backward 2 s. 1F1B, a column per second:
//
//   stage 0  F F . . B B F B B F B B . B B
//   stage 1  . F B B F B B F B B F B B . .      (4 + 2 - 1) * (1 s + 2 s) = 15 s
Job two_stages() {
  Job job;
  job.parallelism.pipeline_model_parallel_size = 2;
  job.parallelism.global_batch_size = 4;
  job.given_times = GivenTimes{{Seconds{1}}, {Seconds{2}}, {}};
  job.data.samples = 4 * 86400 / 15;
  return job;
}

TEST(Simulate, GivenTimesMakeTheStepOfTheTextbook) {
  EXPECT_DOUBLE_EQ(simulate(two_stages()).iteration.value, 15);
}

// 86,400 s on two GPUs.
TEST(Simulate, GpuDaysAreStepsTimesGpus) { EXPECT_DOUBLE_EQ(simulate(two_stages()).gpu_days, 2); }

TEST(Simulate, SamplesPerSecondAreABatchPerStep) {
  EXPECT_DOUBLE_EQ(simulate(two_stages()).samples_per_s, 4. / 15);
}

// Stage 1 waits one forward before and one backward after, stage 0 three seconds in between.
TEST(Simulate, BubbleSharesAreMeansOverStages) {
  const Outcome out = simulate(two_stages());
  EXPECT_DOUBLE_EQ(out.bubble_shares[kWarmup], 1. / 30);
  EXPECT_DOUBLE_EQ(out.bubble_shares[kCooldown], 2. / 30);
  EXPECT_DOUBLE_EQ(out.bubble_shares[kOther], 3. / 30);
}

TEST(Simulate, EachStageIsBusyForItsPasses) {
  for (const StageFigures& stage : simulate(two_stages()).stages)
    EXPECT_DOUBLE_EQ(stage.busy.value, 12);
}

TEST(Simulate, SpansOfAComputeStreamCoverTheStep) {
  std::array<Time, 2> covered{};
  for (const Span& s : simulate(two_stages()).spans)
    if (s.stream == StreamKind::compute)
      covered[static_cast<std::size_t>(s.stage)] += s.end - s.start;
  EXPECT_EQ(covered, (std::array{to_time(Seconds{15}), to_time(Seconds{15})}));
}

TEST(Simulate, TheCriticalPathAddsUpToTheStep) {
  double sum = 0;
  for (const PathPart& p : simulate(two_stages(), {.critical_path = true}).critical_path)
    sum += p.time.value;
  EXPECT_DOUBLE_EQ(sum, 15);
}

TEST(Simulate, WithoutATimelineThereAreNoSpans) {
  EXPECT_TRUE(simulate(two_stages(), {.timeline = false}).spans.empty());
}

TEST(Simulate, AModelWithoutCostsIsOurMistake) {
  Job job = two_stages();
  job.given_times.reset();
  EXPECT_THROW(simulate(job), InternalError);
}

// GEMMs at 1 PFLOP/s, all else free.
class OnlyGemms : public SimpleCosts {
  Cost attention(const Attention&) const override { return {}; }
  Cost memory_bound(const MemoryBound&) const override { return {}; }
};

// One block and a head on one GPU: hidden size h = 1000, s = 1000 tokens, V = 51,200 words. GEMMs
// of a forward: 24 s h^2 + 2 s h V = 24e9 + 102.4e9 FLOPs; a backward has twice as many. So a
// micro-batch takes 379.2 us, and a step has two.
Job one_gpu() {
  Job job;
  job.cluster.nodes = job.cluster.gpus_per_node = 1;
  job.cluster.gpu_memory = {80LL << 30};
  job.model = gpt(1, 1000, 10);
  job.data.samples = 1e9;
  job.data.tokens_per_sample = 1000;
  job.parallelism.global_batch_size = 2;
  job.software.host_time_per_kernel = job.software.host_time_per_pass = Seconds{0};
  use_defaults(job);
  return job;
}

TEST(Simulate, AStepOfOneGpuIsTheSumOfItsKernels) {
  EXPECT_NEAR(simulate(one_gpu(), OnlyGemms()).iteration.value, 758.4e-6, 1e-9);
}

// Attention over the full square, 3 * 4 s^2 h FLOPs, counts though it takes no time here.
TEST(Simulate, MfuIsModelFlopsOverThoseOfThePeak) {
  EXPECT_NEAR(simulate(one_gpu(), OnlyGemms()).mfu, (379.2 + 12) / 379.2, 1e-4);
}

TEST(Simulate, FactorsSlowKernelsDown) {
  const RunOptions slower{.factors = {.gemm = 1.5}};
  EXPECT_NEAR(simulate(one_gpu(), OnlyGemms(), slower).iteration.value, 1.5 * 758.4e-6, 1e-9);
}

TEST(Simulate, APlanThatDoesNotFitIsStillSimulated) {
  Job job = one_gpu();
  job.cluster.gpu_memory = {1LL << 30};
  const Outcome out = simulate(job, OnlyGemms());
  EXPECT_FALSE(out.fits);
  EXPECT_TRUE(out.reason.starts_with("stage 0 needs "));
  EXPECT_NEAR(out.iteration.value, 758.4e-6, 1e-9);
}

}  // namespace
}  // namespace mllmsim
