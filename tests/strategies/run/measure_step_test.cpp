// One step measured by itself: two stages, four micro-batches, forward 1 s, backward 2 s.
//
//   stage 0  F F . . B B F B B F B B . B B
//   stage 1  . F B B F B B F B B F B B . .      15 s
#include "strategies/run/measure_step.hpp"

#include <gtest/gtest.h>

#include "strategies/plans/partition.hpp"

namespace mllmsim {
namespace {

run::MeasuredStep measured(const run::ShownStep& shown = {}) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = 2;
  job.parallelism.global_batch_size = 4;
  job.given_times = GivenTimes{{Seconds{1}}, {Seconds{2}}, {}};
  return run::measure_given_step(job, plans::plan_of_given_times(job), shown);
}

TEST(MeasureStep, BusyAndBubblesAreTheStepOnEachDevice) {
  const run::MeasuredStep step = measured();
  for (std::size_t device : {0U, 1U})
    EXPECT_EQ(step.busy[device] + step.bubbles[device].total(), to_time(Seconds{15}));
}

TEST(MeasureStep, PassesAreMeansOverMicroBatches) {
  const run::MeasuredStep step = measured();
  EXPECT_EQ(step.forward, (std::vector{Seconds{1}, Seconds{1}}));
  EXPECT_EQ(step.backward, (std::vector{Seconds{2}, Seconds{2}}));
}

// Of 30 device-seconds 24 are computation.
TEST(MeasureStep, AReplicasBubbleShareIsOfAllItsDevices) {
  EXPECT_DOUBLE_EQ(measured().replicas.front().bubble_share, 6. / 30);
}

// 8 passes per stage, 4 activations and 4 gradients with two ends each, 4 bubbles.
TEST(MeasureStep, ShowsATaskOrABubblePerSpan) {
  EXPECT_EQ(measured({.timeline = true}).spans.size(), 2U * 8 + 2 * 8 + 4);
  EXPECT_TRUE(measured().spans.empty());
}

}  // namespace
}  // namespace mllmsim
