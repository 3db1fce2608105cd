// Which transfers a pass has, and what they join.
#include <gtest/gtest.h>

#include "strategies/lower/pipeline.hpp"
#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
namespace {

Program given(int ranks, int chunks, int micro_batches) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = ranks;
  job.parallelism.virtual_pipeline_stages = chunks;
  job.parallelism.global_batch_size = micro_batches;
  job.given_times = GivenTimes{{Seconds{1e-3}}, {Seconds{2e-3}}, Seconds{1e-5}};
  return lower::to_program(job, plans::plan_of_given_times(job), *job.given_times);
}

// Passes, by rank:              F 0, B 1  and  F 2, B 3.
// Transfers, sent and received: activations 4 and 5, gradients 6 and 7.
TEST(Transfers, JoinTheForwardsDownAndTheBackwardsUp) {
  const Program program = given(2, 1, 1);
  EXPECT_EQ(program.tasks().size(), 8U);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const Program::Edge& e : program.dependencies())
    edges.emplace_back(e.before.value, e.after.value);
  EXPECT_EQ(edges,
            (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 4}, {5, 2}, {3, 6}, {7, 1}}));
}

// Given times know passes and transfers: no gradients to reduce, no optimizer.
// 2 ranks, 2 chunks, 4 micro-batches: 32 passes; 4 stages have 3 boundaries, crossed twice by each
// micro-batch, each time with a send and a receive: 48 tasks.
TEST(Transfers, GivenTimesMakePassesAndTransfersOnly) {
  EXPECT_EQ(given(2, 2, 4).tasks().size(), 32U + 48U);
}

// Chunk 0 of the last rank hands on to chunk 1 of the first.
TEST(Transfers, TheLastRankSendsToTheNextChunkOfTheFirst) {
  const Program program = given(2, 2, 2);
  const Task& received =
      program.tasks()[on_stream(program, {0}, StreamKind::pp_recv_prev).front().value];
  EXPECT_EQ(received.chunk, 1);
}

// Nothing in the encoder is trained, so no gradient goes back to it: one send and one receive of
// activations per micro-batch, and that is all.
TEST(Transfers, NoGradientsToWhereNothingIsTrained) {
  Job job = small_job();
  job.parallelism = {};
  job.parallelism.pipeline_model_parallel_size = 2;
  job.parallelism.global_batch_size = 3;
  job.model.encoders[0].trained = job.model.encoders[0].projector_trained = false;
  JobCosts costs(job);
  // Embedding, 6 blocks and projector on rank 0; embedding, 8 blocks and head on rank 1.
  const Program program = lower::to_program(job, plan_of(job, {8, 10}), costs.context());
  EXPECT_EQ(on_stream(program, {0}, StreamKind::pp_send_next).size(), 3U);
  EXPECT_EQ(on_stream(program, {1}, StreamKind::pp_recv_prev).size(), 3U);
  EXPECT_EQ(on_stream(program, {1}, StreamKind::pp_send_prev).size(), 0U);
}

// Behind the third of six encoder blocks. Two tp ranks split a tile of 258 tokens and send half of
// it each, but not one of 257, which both hold and send whole.
TEST(Transfers, WhatSequenceParallelismLeavesWholeIsSentWhole) {
  const auto sent_by_a_gpu = [](std::int64_t tokens_per_tile) {
    Job job = small_job();
    job.parallelism = {};
    job.parallelism.tensor_model_parallel_size = job.parallelism.pipeline_model_parallel_size = 2;
    job.parallelism.sequence_parallel = true;
    job.model.encoders[0].tokens_per_tile = tokens_per_tile;
    JobCosts costs(job);
    const Program program = lower::to_program(job, plan_of(job, {4, 14}), costs.context());
    const TaskId send = on_stream(program, {0}, StreamKind::pp_send_next).front();
    return program.transfers()[program.tasks()[send.value].transfer.value].factor;
  };
  EXPECT_DOUBLE_EQ(sent_by_a_gpu(257) / 257, 2 * sent_by_a_gpu(258) / 258);
}

constexpr Pass kF{true, 0, 0}, kB{false, 0, 0};

TEST(Turns, AreSinglePassesOf1F1B) {
  EXPECT_EQ(lower::turns_of({kF, kF, kB, kF, kB, kB}, 1),
            (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
}

// F F (F B) (F B) B B
TEST(Turns, OfInterleaved1F1BArePairsBetweenWarmUpAndCoolDown) {
  EXPECT_EQ(lower::turns_of({kF, kF, kF, kB, kF, kB, kB, kB}, 2),
            (std::vector<std::size_t>{0, 1, 2, 4, 6, 7, 8}));
}

// All forwards are warm-up: there is nothing to pair.
TEST(Turns, AreSinglePassesIfAllForwardsComeFirst) {
  EXPECT_EQ(lower::turns_of({kF, kF, kB, kB}, 2), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace mllmsim
