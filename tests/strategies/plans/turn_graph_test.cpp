#include "strategies/plans/turn_graph.hpp"

#include <gtest/gtest.h>

namespace mllmsim::plans {
namespace {

Job pipeline(int ranks, int chunks, bool overlap) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = ranks;
  job.parallelism.virtual_pipeline_stages = chunks;
  job.software.overlap_p2p = overlap;
  return job;
}

using Stages = std::vector<TurnGraph::Stage>;

// Four ranks, eight micro-batches of 1 + 2: (8 + 4 - 1) * 3.
TEST(TurnGraph, IsTheFormulaOf1F1B) {
  const TurnGraph graph(pipeline(4, 1, true), ScheduleKind::one_f_one_b, 8, {});
  EXPECT_DOUBLE_EQ(graph.span(Stages(4, {1, 2})), 33);
}

// Two chunks each: (2 * 8 + 4 - 1) * 3.
TEST(TurnGraph, IsTheFormulaOfInterleaved1F1B) {
  const TurnGraph graph(pipeline(4, 2, true), ScheduleKind::interleaved, 8, {});
  EXPECT_DOUBLE_EQ(graph.span(Stages(8, {1, 2})), 57);
}

// One micro-batch there and back over two ranks: both forwards and backwards, two transfers of 1/4
// and four starts of 1/8.
TEST(TurnGraph, CountsTransfersAndStarts) {
  const TurnGraph graph(pipeline(2, 1, false), ScheduleKind::one_f_one_b, 1, {0.125, 0.25});
  EXPECT_DOUBLE_EQ(graph.span(Stages(2, {1, 2})), 7);
}

// Two ranks, two micro-batches, everything takes 1. Overlapped, rank 1 has its first input at 2,
// rank 0 its last gradient at 7. In turns, rank 0 starts its second forward when its first output
// has arrived, at 2, and rank 1 takes that output when its first backward is done and sent: at 5,
// one later than before.
TEST(TurnGraph, BlockingExchangesMakeNeighboursWait) {
  const Stages stages(2, {1, 1});
  const TurnGraph::Costs costs{0, 1};
  EXPECT_DOUBLE_EQ(
      TurnGraph(pipeline(2, 1, true), ScheduleKind::one_f_one_b, 2, costs).span(stages), 8);
  EXPECT_DOUBLE_EQ(
      TurnGraph(pipeline(2, 1, false), ScheduleKind::one_f_one_b, 2, costs).span(stages), 9);
}

}  // namespace
}  // namespace mllmsim::plans
