// Activations of 2 of 8 blocks in the CPU's memory: copied beside blocks 0 to 3 and 4 to 7, and
// back beside the same blocks' backwards.
#include "strategies/lower/activation_offload.hpp"

#include <gtest/gtest.h>

#include "tests/strategies/small_job.hpp"

namespace mllmsim {
namespace {

Job text_job(int offloaded, double link) {
  Job job = small_job();
  job.model.encoders.clear();
  job.data.tiles_per_sample = 0;
  job.parallelism = {};
  job.parallelism.zero_stage = 1;
  job.parallelism.global_batch_size = 3;
  job.cluster.host_link_bandwidth = {link};
  job.software.cpu_offloading_num_layers = offloaded;
  return job;
}

TEST(ActivationOffload, WindowsShareAllBlocks) {
  EXPECT_EQ(offload_windows(8, 2), (std::vector{3, 7}));
  EXPECT_EQ(offload_windows(80, 20).front(), 3);
  EXPECT_EQ(offload_windows(80, 20).back(), 79);
  EXPECT_EQ(offload_windows(5, 2), (std::vector{2, 4}));
  EXPECT_TRUE(offload_windows(8, 0).empty());
}

LayerTotals block_of(const Job& job) {
  JobCosts costs(job);
  MicroBatch mb;
  mb.llm.groups = {{job.data.tokens_per_sample, 1}};
  return costs.layers.total({LayerKind::block, 0, 0}, mb, Recompute::none);
}

// The head is where most is held: the two blocks have left by then.
TEST(ActivationOffload, CopiesThatBlocksOutlastTakeNoTimeAndLeaveMemory) {
  const Simulated none = simulate_job(text_job(0, 1e15)), some = simulate_job(text_job(2, 1e15));
  EXPECT_EQ(some.timeline.span, none.timeline.span);
  EXPECT_EQ(peak(none.memory().front()) - peak(some.memory().front()),
            block_of(text_job(2, 1e15)).saved * 2);
}

// Three micro-batches of two windows there and two back, each as long as the copy of a block.
TEST(ActivationOffload, OtherwiseAWindowTakesAsLongAsItsCopy) {
  const Job job = text_job(2, 1e6);
  const LayerTotals block = block_of(job);
  const Time copy = to_time(block.saved / job.cluster.host_link_bandwidth);
  const Time blocks = (block.forward.time + block.backward.time) * 8;
  const Simulated none = simulate_job(text_job(0, 1e6)), some = simulate_job(job);
  EXPECT_EQ(some.timeline.span - none.timeline.span, (copy * 4 - blocks) * 3);
}

}  // namespace
}  // namespace mllmsim
