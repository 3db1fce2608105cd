// What is gathered and reduced over replicas, and which tasks wait for it.
#include <gtest/gtest.h>

#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
using namespace lower;
namespace {

// Two replicas of one rank, two micro-batches.
Job replicated(int zero_stage) {
  Job job = five_layers();
  job.parallelism.data_parallel_size = 2;
  job.parallelism.zero_stage = zero_stage;
  job.parallelism.global_batch_size = 4;
  return job;
}

struct Streams {
  Program program;
  std::vector<TaskId> compute, dp;
};

Streams streams(const Job& job) {
  JobCosts costs(job);
  Program program = to_program(job, plan_of(job, {5}), costs.context());
  auto compute = on_stream(program, {0}, StreamKind::compute);
  auto dp = on_stream(program, {0}, StreamKind::dp);
  return {std::move(program), std::move(compute), std::move(dp)};
}

// Every layer is a bucket: the first forward and the last backward have a task for each.
TEST(Collectives, BucketsAreGatheredBeforeTheirFirstForwardAndReducedAfterTheirLastBackward) {
  const Streams s = streams(replicated(1));
  ASSERT_EQ(letters(s.program, s.compute),
            "FFFFF"
            "B"
            "F"
            "BBBBB"
            "O");
  ASSERT_EQ(letters(s.program, s.dp),
            "GGGGG"
            "RRRRR"
            "S");
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(before(s.program, s.compute[i]), std::vector{s.dp[i]});
    EXPECT_EQ(before(s.program, s.dp[5 + i]), std::vector{s.compute[7 + i]});
  }
}

// Of two replicas each sends half of a bucket: of 2 bytes per parameter, then of 4.
TEST(Collectives, SendTheirShareOfABucket) {
  const Job job = replicated(1);
  const Streams s = streams(job);
  const std::int64_t embedding = parameters(job.model, layers_of(job.model).front());
  EXPECT_EQ(s.program.tasks()[s.dp[0].value].bytes, Bytes{embedding});
  EXPECT_EQ(s.program.tasks()[s.dp[9].value].bytes, Bytes{2 * embedding});
}

// Not overlapped, all parameters are gathered before the step and all gradients reduced behind it.
TEST(Collectives, WithoutOverlapThereIsOneOfEach) {
  Job job = replicated(1);
  job.software.overlap_param_gather = job.software.overlap_grad_reduce = false;
  const Streams s = streams(job);
  EXPECT_EQ(letters(s.program, s.compute), "FBFBO");
  EXPECT_EQ(letters(s.program, s.dp), "GRS");
  EXPECT_EQ(before(s.program, s.compute[0]), std::vector{s.dp[0]});
  EXPECT_EQ(before(s.program, s.dp[1]), std::vector{s.compute[3]});
}

// zero_stage 0: every rank has all parameters.
TEST(Collectives, NothingIsGatheredIfNothingIsSharded) {
  const Streams s = streams(replicated(0));
  EXPECT_EQ(letters(s.program, s.dp), "RRRRRS");
}

// Buckets are only on the first rank; the second gathers and reduces its chunk as a whole.
TEST(Collectives, OtherRanksHaveOneBucketPerChunk) {
  Job job = replicated(1);
  job.parallelism.pipeline_model_parallel_size = 2;
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {2, 3}), costs.context());
  EXPECT_EQ(letters(program, on_stream(program, {0}, StreamKind::dp)), "GGRRS");
  EXPECT_EQ(letters(program, on_stream(program, {1}, StreamKind::dp)), "GRS");
}

// zero_stage 3, one micro-batch, one layer ahead: when layer i starts, i + 1 is gathered already
// and i + 2 may be once i is done. Backwards scatter each layer's gradients when it is done.
TEST(Collectives, ShardsAreGatheredALayerAhead) {
  Job job = replicated(3);
  job.parallelism.global_batch_size = 2;
  const Streams s = streams(job);
  EXPECT_EQ(letters(s.program, s.dp),
            "GGGGGGG"
            "GR"
            "GR"
            "GR"
            "RR"
            "S");
  // The layers' last tasks: what the first gathers wait for, after the two that wait for nothing.
  EXPECT_TRUE(before(s.program, s.dp[0]).empty());
  EXPECT_TRUE(before(s.program, s.dp[1]).empty());
  for (std::size_t i = 2; i < 7; ++i) {
    const std::vector<TaskId> freed = before(s.program, s.dp[i]);
    ASSERT_EQ(freed.size(), 1U);
    // Done with layer i - 2, which was gathered by dp[i - 2] for it, and before layer i - 1 starts.
    EXPECT_TRUE(std::ranges::any_of(s.compute, [&](TaskId first) {
      return joined(s.program, s.dp[i - 2], first) && first <= freed[0];
    }));
    EXPECT_TRUE(std::ranges::any_of(s.compute, [&](TaskId next) {
      return joined(s.program, s.dp[i - 1], next) && s.program.next_on_stream(freed[0]) == next;
    }));
  }
}

// Two replicas. With n layers ahead, the gather of layer i waits for layer i - n - 1, and on their
// stream for what was issued before it: the gathers of earlier layers, and the scatters of those
// that were done by then.
TEST(Collectives, ShardedLayersWaitForTheirGathers) {
  for (const int ahead : {0, 1, 3}) {
    Job job = replicated(3);
    job.software.zero3_prefetch_layers = ahead;
    JobCosts costs(job);
    const SimulatedStep step = simulate_plan(job, plan_of(job, {5}), costs.context());
    const std::vector<ShardedLayer> layers = sharded_layers(step.program);
    const auto window = static_cast<std::size_t>(ahead) + 1;
    std::vector<Time> gathered(layers.size());
    Time stream{}, computed{};
    for (std::size_t i = 0; i < window; ++i) gathered[i] = stream += layers[i].gather;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      computed = std::max(computed, gathered[i]) + layers[i].work();
      if (i + window < layers.size())
        gathered[i + window] = stream = std::max(stream, computed) + layers[i + window].gather;
      if (layers[i].backward) stream = std::max(stream, computed) + layers[i].scatter;
    }
    for (const Task& task : step.program.tasks())
      if (task.kind == TaskKind::optimizer || task.kind == TaskKind::sync) stream += task.duration;
    EXPECT_EQ(step.span(), stream) << ahead << " layers ahead";
  }
}

// A gather of a layer in 4 pieces is 4 of a quarter each. A tensor for each of 2 ranks costs 2
// operators of 1 s for each piece gathered and 3 for each scattered: 4 * 2 * 2 and 4 * 2 * 3 s.
TEST(Collectives, ShardedLayersGoInPieces) {
  Job job = replicated(3);
  job.software.zero3_collectives_per_layer = 4;
  job.software.host_time_per_kernel = {1};
  JobCosts costs(job);
  const auto layers = [&] {
    return sharded_layers(to_program(job, plan_of(job, {5}), costs.context()));
  };
  const std::vector<ShardedLayer> pieces = layers();
  const std::int64_t embedding = parameters(job.model, layers_of(job.model).front());
  const Collective quarter{CollectiveOp::all_gather, Bytes{2 * embedding / 4}, {2, 1, 1}};
  EXPECT_EQ(pieces.front().gather, to_time(costs.kernels->collective(quarter).time * 4.0));
  job.software.zero3_tensor_per_rank = true;
  const std::vector<ShardedLayer> tensors = layers();
  ASSERT_EQ(tensors.size(), 2U * 2 * 5);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].gather - pieces[i].gather, to_time(Seconds{16}));
    EXPECT_EQ(tensors[i].scatter - pieces[i].scatter,
              to_time(Seconds{tensors[i].backward ? 24. : 0}));
  }
}

// The embedding's W parameters of 2 bytes are read and written as a half, as a whole, and as
// gradients: 2 (1 + 2) W bytes forward and 2 * 2 W more backward.
TEST(Collectives, ShardsAreCopiedIntoAndOutOfBuffers) {
  Job job = replicated(3);
  job.software.zero3_prefetch_layers = 0;  // forwards have nothing beside them
  JobCosts costs(job);
  const auto layers = [&] {
    return sharded_layers(to_program(job, plan_of(job, {5}), costs.context()));
  };
  const std::vector<ShardedLayer> before = layers();
  job.software.zero3_copies = true;
  const std::vector<ShardedLayer> after = layers();
  const std::int64_t w = parameters(job.model, layers_of(job.model).front());
  const auto copied = [&](std::int64_t bytes) {
    return to_time(costs.kernels->memory_bound({MemoryOp::elementwise, Bytes{bytes}}).time);
  };
  EXPECT_EQ(after[0].work() - before[0].work(), copied(6 * w));
  EXPECT_EQ(after[9].work() - before[9].work(), copied(10 * w));
}

// A recomputed block's backward finds its parameters where its second forward left them, unless too
// many were used in between: with a limit of one parameter all matrices but the last go once more.
TEST(Collectives, WhatIsUsedTooLateIsGatheredAgain) {
  Job job = replicated(3);
  job.recompute.llm = Recompute::full;
  const auto gathered = [&] {
    JobCosts costs(job);
    const Program program = to_program(job, plan_of(job, {5}), costs.context());
    std::int64_t bytes = 0;
    for (const TaskId id : on_stream(program, {0}, StreamKind::dp))
      if (program.tasks()[id.value].kind == TaskKind::dp_all_gather)
        bytes += program.tasks()[id.value].bytes.value;
    return bytes;
  };
  const std::int64_t kept = gathered();
  job.software.zero3_max_reuse_distance = std::int64_t{1} << 40;
  EXPECT_EQ(gathered(), kept);
  job.software.zero3_max_reuse_distance = 1;
  // Of 12 h^2 parameters 8 h^2, in 3 blocks of 2 micro-batches; a rank sends half of 2 bytes each.
  const std::int64_t block = parameters(job.model, layers_of(job.model)[1]);
  EXPECT_NEAR(static_cast<double>(gathered() - kept), 3 * 2 * 2 / 3.0 * static_cast<double>(block),
              6);
}

// zero_stage 2: every micro-batch scatters its own gradients, in the parameters' 2 bytes.
TEST(Collectives, ShardedGradientsAreScatteredByEveryMicroBatch) {
  const Job job = replicated(2);
  const Streams s = streams(job);
  EXPECT_EQ(letters(s.program, s.compute), "FFFFFBFBBBBBO");
  EXPECT_EQ(letters(s.program, s.dp),
            "GGGGG"
            "R"  // the first micro-batch's, of all layers
            "RRRRR"
            "S");
  std::int64_t all = 0;
  for (const Layer& layer : layers_of(job.model)) all += parameters(job.model, layer);
  EXPECT_EQ(s.program.tasks()[s.dp[5].value].bytes, Bytes{all});  // half of 2 bytes each
  EXPECT_EQ(before(s.program, s.dp[5]), std::vector{s.compute[5]});
}

// Not overlapped, the next forward waits for the gradients of the last backward.
TEST(Collectives, WithoutOverlapShardedGradientsAreWaitedFor) {
  Job job = replicated(2);
  job.software.overlap_grad_reduce = job.software.overlap_param_gather = false;
  const Streams s = streams(job);
  EXPECT_EQ(letters(s.program, s.dp), "GRRS");
  EXPECT_EQ(before(s.program, s.compute[2]), std::vector{s.dp[1]});
}

// Four replicas, two copies of two shards each (HSDP): half of a layer's 2 bytes per parameter is
// gathered and scattered in a copy, then its half all-reduced with the other copy: again half of 2
// bytes, since both send twice half of half.
TEST(Collectives, HybridShardsAreReducedBetweenCopies) {
  Job job = replicated(3);
  job.parallelism.data_parallel_size = 4;
  job.parallelism.global_batch_size = 4;
  job.parallelism.data_parallel_replicate_degree = 2;
  const Streams s = streams(job);
  EXPECT_EQ(std::ranges::count(letters(s.program, s.dp), 'G'), 10);
  EXPECT_EQ(std::ranges::count(letters(s.program, s.dp), 'R'), 10);
  const std::int64_t embedding = parameters(job.model, layers_of(job.model).front());
  EXPECT_EQ(s.program.tasks()[s.dp.front().value].bytes, Bytes{embedding});
  for (std::size_t i = s.dp.size() - 3; i + 1 < s.dp.size(); ++i)  // the embedding's come last
    EXPECT_EQ(s.program.tasks()[s.dp[i].value].bytes, Bytes{embedding});
}

// Parameters that stay from forward to backward are gathered once.
TEST(Collectives, ParametersThatStayAreGatheredOnce) {
  Job job = replicated(3);
  job.parallelism.reshard_after_forward = false;
  EXPECT_EQ(std::ranges::count(letters(streams(job).program, streams(job).dp), 'G'), 10);
}

// Two cp ranks of one replica reduce their gradients as two replicas would.
TEST(Collectives, ContextParallelRanksReduceTheirGradients) {
  Job job = replicated(1);
  job.parallelism.data_parallel_size = 1;
  job.parallelism.context_parallel_size = 2;
  job.parallelism.global_batch_size = 4;
  const Streams s = streams(job);
  const std::int64_t embedding = parameters(job.model, layers_of(job.model).front());
  EXPECT_EQ(s.program.tasks()[s.dp[0].value].bytes, Bytes{embedding});
}

// Four replicas, two sets of experts: what all share is reduced over four (3/4 of it sent by each),
// half of the experts over the two that hold them (1/2).
TEST(Collectives, ExpertsReduceTheirGradientsWhereTheyAre) {
  Job job = replicated(0);
  job.parallelism.data_parallel_size = 4;
  job.parallelism.global_batch_size = 8;
  job.parallelism.expert_model_parallel_size = 2;
  job.software.overlap_grad_reduce = false;
  job.software.reduce_scatter_grads = false;
  for (Transformer* t : {&job.model.llm.blocks}) t->experts = {4, 2, 64, 0};
  const Streams s = streams(job);
  std::int64_t experts = 0;
  for (const Layer& layer : layers_of(job.model)) experts += expert_parameters(job.model, layer);
  const std::int64_t rest = parameters(job.model) - experts;
  ASSERT_EQ(letters(s.program, s.dp), "RRS");
  EXPECT_EQ(s.program.tasks()[s.dp[0].value].bytes, Bytes{4 * rest * 2 * 3 / 4});
  EXPECT_EQ(s.program.tasks()[s.dp[1].value].bytes, Bytes{4 * experts / 2});
}

// What collectives beside it cost a layer comes after its last kernel, which may be a collective on
// the tp stream: kernel by kernel the step takes as long as layer by layer.
TEST(Collectives, ShardedLayersAreSlowedBehindTheirLastKernel) {
  Job job = replicated(3);
  job.parallelism.tensor_model_parallel_size = 2;
  JobCosts costs(job);
  const Plan plan = plan_of(job, {5});
  const Time by_layer = simulate_plan(job, plan, costs.context()).span();
  job.granularity = Granularity::kernel;
  EXPECT_EQ(simulate_plan(job, plan, costs.context()).span(), by_layer);
}

// DeepSpeed's bf16 optimizer reduces all gradients to all replicas, those of encoders beside the
// pipeline too: twice the bytes.
TEST(Collectives, EncodersReduceTheirGradientsAsTheSoftwareDoes) {
  Job job = small_job();
  job.strategy = "optimus";
  const auto reduced = [&](bool scatter) {
    job.software.reduce_scatter_grads = scatter;
    std::int64_t bytes = 0;
    const Simulated s = simulate_job(job);
    for (const Task& task : s.program.tasks())
      if (task.kind == TaskKind::dp_reduce_scatter) bytes += task.bytes.value;
    return static_cast<double>(bytes);
  };
  EXPECT_NEAR(reduced(false) / reduced(true), 2, 1e-6);
}

// The optimizer runs when all have met, and they meet when their last backwards are done.
TEST(Collectives, AllMeetBeforeTheOptimizer) {
  const Streams s = streams(replicated(1));
  EXPECT_EQ(before(s.program, s.dp.back()), std::vector{s.compute[11]});
  EXPECT_EQ(before(s.program, s.compute.back()), std::vector{s.dp.back()});
}

}  // namespace
}  // namespace mllmsim
