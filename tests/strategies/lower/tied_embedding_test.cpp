// A tied head on another stage: its gradients meet those of the embedding.
#include "strategies/lower/tied_embedding.hpp"

#include <gtest/gtest.h>

#include "strategies/step/simulate_plan.hpp"
#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
using namespace lower;
namespace {

Job two_stages(bool tied) {
  Job job = five_layers();
  job.parallelism.pipeline_model_parallel_size = 2;
  job.parallelism.global_batch_size = 2;
  job.model.llm.tie_word_embeddings = tied;
  return job;
}

// Embedding and two blocks; a block and the head. Of an all-reduce over two each sends as much as
// the buffer holds: 4 bytes for each of vocabulary x 2,048 gradients.
TEST(TiedEmbedding, IsReducedOverTheStagesThatHoldIt) {
  const Job job = two_stages(true);
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {3, 2}), costs.context());
  for (const std::uint32_t device : {0u, 1u}) {
    const auto dp = on_stream(program, {device}, StreamKind::dp);
    ASSERT_EQ(letters(program, dp), "SRS");  // the stages meet, reduce, and all ranks meet
    EXPECT_EQ(program.tasks()[dp[1].value].bytes, Bytes{4 * job.model.llm.vocab_size * 2048});
    const auto compute = on_stream(program, {device}, StreamKind::compute);
    EXPECT_TRUE(joined(program, compute[compute.size() - 2], dp[0]));  // the last backward
  }
}

// One replica: the last stage is done first and waits for the pipeline, never for a replica. After
// its last backward all but the reduction and the update is cool-down.
TEST(TiedEmbedding, WaitingForTheFirstStageIsCoolDown) {
  const Job job = two_stages(true);
  JobCosts costs(job);
  const SimulatedStep step = simulate_plan(job, plan_of(job, {3, 2}), costs.context());
  const auto compute = on_stream(step.program, {1}, StreamKind::compute);
  const TaskId backward = compute[compute.size() - 2], update = compute.back();
  const TaskId reduction = on_stream(step.program, {1}, StreamKind::dp)[1];
  const auto times = step.device_times();
  EXPECT_EQ(times[1].bubbles[BubbleKind::pp_cooldown],
            step.span() - step.timeline.end[backward.value] -
                step.program.tasks()[update.value].duration -
                step.program.tasks()[reduction.value].duration);
  EXPECT_EQ(times[1].bubbles[BubbleKind::dp_wait], Time{});
}

TEST(TiedEmbedding, IsHeldTwiceOnTwoStagesAndOnceOnOne) {
  const Job job = two_stages(true);
  const std::int64_t matrix = job.model.llm.vocab_size * 2048;
  const Plan two = plan_of(job, {3, 2});
  EXPECT_EQ(copied_embedding(job, two.stages[0]), 0);
  EXPECT_EQ(copied_embedding(job, two.stages[1]), matrix);
  Job whole = job;
  whole.parallelism.pipeline_model_parallel_size = 1;
  EXPECT_EQ(copied_embedding(whole, plan_of(whole, {5}).stages[0]), 0);
}

TEST(TiedEmbedding, OthersHaveNothingToReduce) {
  const Job job = two_stages(false);
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {3, 2}), costs.context());
  EXPECT_EQ(letters(program, on_stream(program, {0}, StreamKind::dp)), "S");
}

}  // namespace
}  // namespace mllmsim
