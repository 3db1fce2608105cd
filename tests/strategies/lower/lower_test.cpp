// What lowering promises: both granularities take the same time, a replica that stands for all
// takes as long as all of them, and communication is exposed where Megatron exposes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/base/errors.hpp"
#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
namespace {

Time kind_total(const Simulated& s, BubbleKind kind) {
  Time sum{};
  for (const DeviceTime& d : s.devices) sum += d.bubbles[kind];
  return sum;
}

// How long a device's collectives of a kind take, one after the other.
std::vector<Time> collectives(const Simulated& s, DeviceId device, TaskKind kind) {
  std::vector<Time> out;
  for (std::size_t t = 0; t < s.program.tasks().size(); ++t) {
    const Task& task = s.program.tasks()[t];
    if (task.kind == kind && task.stream == Program::stream(device, StreamKind::dp))
      out.push_back(s.timeline.end[t] - s.timeline.start[t]);
  }
  return out;
}

Time sum(const std::vector<Time>& times) {
  return std::accumulate(times.begin(), times.end(), Time{});
}

// When the last task of a kind is done on a device.
Time last_end(const Simulated& s, DeviceId device, TaskKind kind) {
  Time last{};
  for (std::size_t t = 0; t < s.program.tasks().size(); ++t)
    if (s.program.tasks()[t].kind == kind &&
        Program::device_of(s.program.tasks()[t].stream) == device)
      last = std::max(last, s.timeline.end[t]);
  return last;
}

// Four stages, eight micro-batches: every pass of the first stage starts 1 s later than it could,
// and so do the passes of the first micro-batch on the way there and back: 2 (8 + 3) s.
TEST(Lower, WhereTheCpuWaitsForTransfersPassesStartLate) {
  Job job = small_job();
  job.software.overlap_p2p = false;
  job.software.host_time_per_pass = {0};
  const Time waiting = simulate_job(job).timeline.span;
  job.software.host_time_per_pass = {1};
  const Time late = simulate_job(job).timeline.span;
  EXPECT_NEAR(to_seconds(late - waiting).value, 22, 0.1);
}

TEST(Lower, WaitingForTransfersIsTheSameAtBothGranularities) {
  Job job = small_job();
  job.parallelism.sequence_parallel = false;  // so that shards are gathered
  job.software.overlap_p2p = false;
  const Time by_stage = simulate_job(job).timeline.span;
  job.granularity = Granularity::kernel;
  EXPECT_EQ(by_stage, simulate_job(job).timeline.span);
}

// Whatever the sizes: no rank waits for ever, and none computes while it sends or receives.
TEST(Lower, PassesAndTransfersTakeTurns) {
  for (const int ranks : {2, 4})
    for (const int chunks : {1, 2, 3})
      for (const int rounds : {1, 2, 3}) {
        Job job = small_job();
        job.software.overlap_p2p = false;
        job.parallelism.pipeline_model_parallel_size = ranks;
        job.parallelism.virtual_pipeline_stages = chunks;
        job.parallelism.data_parallel_size = 8 / ranks;
        job.parallelism.global_batch_size = 2 * (8 / ranks) * ranks * rounds;
        const Simulated s = simulate_job(job);
        std::vector<std::vector<std::pair<Time, Time>>> transfers(s.program.devices());
        const auto& tasks = s.program.tasks();
        for (std::size_t t = 0; t < tasks.size(); ++t)
          if (tasks[t].kind == TaskKind::pp_send || tasks[t].kind == TaskKind::pp_recv)
            transfers[Program::device_of(tasks[t].stream).value].emplace_back(s.timeline.start[t],
                                                                              s.timeline.end[t]);
        for (std::size_t t = 0; t < tasks.size(); ++t) {
          if (tasks[t].kind != TaskKind::forward && tasks[t].kind != TaskKind::backward) continue;
          for (const auto& [start, end] : transfers[Program::device_of(tasks[t].stream).value])
            EXPECT_TRUE(end <= s.timeline.start[t] || start >= s.timeline.end[t])
                << ranks << " ranks, " << chunks << " chunks, " << rounds << " rounds";
        }
      }
}

// Two stages, two micro-batches. Rank 0: F0 F1 B0 B1; rank 1: F0 B0 F1 B1. Rank 1 takes the second
// activations as soon as its B0 is done, and no earlier.
TEST(Lower, ARankReceivesOnlyWhenItHasDoneItsTurn) {
  Job job = small_job();
  job.parallelism.pipeline_model_parallel_size = 2;
  job.parallelism.data_parallel_size = 4;
  job.parallelism.global_batch_size = 16;
  job.software.overlap_p2p = false;
  const Simulated s = simulate_job(job);
  Time first_backward_end{}, second_transfer_start{};
  const auto& tasks = s.program.tasks();
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (Program::device_of(tasks[t].stream).value != 1) continue;
    if (tasks[t].kind == TaskKind::backward && tasks[t].micro_batch == 0)
      first_backward_end = std::max(first_backward_end, s.timeline.end[t]);
    if (tasks[t].kind == TaskKind::pp_recv && tasks[t].micro_batch == 1)
      second_transfer_start = s.timeline.start[t];
  }
  EXPECT_EQ(second_transfer_start, first_backward_end);
}

// A layer computes at 1 / 1.18 of its speed as long as there are collectives beside it: of time c
// beside collectives of time b it takes min(0.18 c, (1 - 1 / 1.18) b) longer.
TEST(Lower, ShardedLayersAreSlowedByTheGathersBesideThem) {
  Job job = small_job();
  job.parallelism.tensor_model_parallel_size = 1;
  job.parallelism.pipeline_model_parallel_size = 1;
  job.parallelism.sequence_parallel = false;
  job.parallelism.zero_stage = 3;
  job.parallelism.data_parallel_size = 16;
  int all_of_it = 0, some_of_it = 0;
  for (const ShardedLayer& layer : sharded_layers(simulate_job(job).program)) {
    const double whole = 0.18 * to_seconds(layer.computing).value;
    const double while_beside = (1 - 1 / 1.18) * to_seconds(layer.gather + layer.scatter).value;
    EXPECT_NEAR(to_seconds(layer.slowed).value, std::min(whole, while_beside), 2e-9);
    ++(whole < while_beside ? all_of_it : some_of_it);
  }
  EXPECT_NE(all_of_it, 0);
  EXPECT_NE(some_of_it, 0);
}

// Two nodes per leaf: the four replicas of a pipeline rank are on two leaves.
TEST(Lower, GradientsThatCrossLeavesFeelTheirRouting) {
  Job job = small_job();
  job.parallelism.tensor_model_parallel_size = 4;
  job.parallelism.pipeline_model_parallel_size = 1;
  job.parallelism.data_parallel_size = 4;
  job.cluster.topology.nodes_per_leaf = 2;
  job.software.overlap_param_gather = job.software.overlap_grad_reduce = false;
  const auto in_collectives = [](const Simulated& s) {
    return sum(collectives(s, {0}, TaskKind::dp_all_gather)) +
           sum(collectives(s, {0}, TaskKind::dp_reduce_scatter));
  };
  const Simulated adaptive = simulate_job(job);
  job.cluster.cross_leaf_share = 0.5;
  const Simulated hashed = simulate_job(job);
  EXPECT_EQ(hashed.timeline.span - adaptive.timeline.span,
            in_collectives(hashed) - in_collectives(adaptive));
  // Half the bandwidth; latencies stay.
  EXPECT_NEAR(to_seconds(in_collectives(hashed)) / to_seconds(in_collectives(adaptive)), 2, 0.1);
  job.cluster.topology.nodes_per_leaf = 4;
  EXPECT_EQ(simulate_job(job).timeline.span, adaptive.timeline.span);
}

// 6 encoder blocks and 8 of the LLM on 4 stages: the encoder alone on the first, 2 or 3 on the
// others.
TEST(Lower, TheEncoderCanHaveAStageOfItsOwn) {
  Job job = small_job();
  job.options["partition"] = std::string("encoder_stage");
  const Simulated s = simulate_job(job);
  std::vector<int> encoder_blocks, llm_blocks;
  for (const auto& chunks : s.plan.stages) {
    encoder_blocks.push_back(0);
    llm_blocks.push_back(0);
    for (const PlannedLayer& p : chunks.front())
      if (p.layer.kind == LayerKind::block)
        ++(is_llm(job.model, p.layer) ? llm_blocks : encoder_blocks).back();
  }
  EXPECT_EQ(encoder_blocks, (std::vector<int>{6, 0, 0, 0}));
  std::sort(llm_blocks.begin(), llm_blocks.end());
  EXPECT_EQ(llm_blocks, (std::vector<int>{0, 2, 3, 3}));
}

TEST(Lower, BothGranularitiesTakeTheSameTimeAndHaveTheSameBubbles) {
  for (const int zero_stage : {0, 1, 3}) {
    Job job = small_job();
    job.parallelism.zero_stage = zero_stage;
    if (zero_stage == 3) {
      job.parallelism.pipeline_model_parallel_size = 1;
      job.parallelism.data_parallel_size = 8;
    }
    job.recompute = {Recompute::full, Recompute::selective, {}};
    const Simulated by_stage = simulate_job(job);
    job.granularity = Granularity::kernel;
    const Simulated by_kernel = simulate_job(job);
    EXPECT_EQ(by_stage.timeline.span, by_kernel.timeline.span) << "zero_stage " << zero_stage;
    for (std::size_t d = 0; d < by_stage.devices.size(); ++d)
      EXPECT_EQ(by_stage.devices[d].busy, by_kernel.devices[d].busy);
    for (std::size_t k = 0; k < kBubbleKinds; ++k)
      EXPECT_EQ(kind_total(by_stage, static_cast<BubbleKind>(k)),
                kind_total(by_kernel, static_cast<BubbleKind>(k)))
          << Names<BubbleKind>::list[k] << ", zero_stage " << zero_stage;
  }
}

TEST(Lower, InterleavedGranularitiesAgreeToo) {
  Job job = small_job();
  job.parallelism.virtual_pipeline_stages = 2;
  const Time by_stage = simulate_job(job).timeline.span;
  job.granularity = Granularity::kernel;
  EXPECT_EQ(by_stage, simulate_job(job).timeline.span);
}

// Two replicas with equal data do the same at the same time, so simulating both or one changes
// nothing.
TEST(Lower, OneReplicaStandsForAll) {
  for (const int zero_stage : {0, 1}) {
    Job job = small_job();
    job.parallelism.zero_stage = zero_stage;
    use_defaults(job);
    JobCosts costs(job);
    Plan plan = make_plan(job, costs.context());
    const Time one = simulate_plan(job, plan, costs.context()).timeline.span;
    plan.micro_batches.push_back(plan.micro_batches.front());
    EXPECT_EQ(one, simulate_plan(job, plan, costs.context()).timeline.span);
  }
}

// The second replica has twice the tokens: the first waits for it before its gradients are reduced.
TEST(Lower, AFasterReplicaWaits) {
  Job job = small_job();
  use_defaults(job);
  JobCosts costs(job);
  Plan plan = make_plan(job, costs.context());
  auto longer = plan.micro_batches.front();
  for (MicroBatch& mb : longer) mb.llm.groups.front().length *= 2;
  plan.micro_batches.push_back(longer);
  const Simulated s = simulate_plan(job, plan, costs.context());
  EXPECT_EQ(s.devices[0].bubbles[BubbleKind::dp_wait],
            last_end(s, {4}, TaskKind::backward) - last_end(s, {0}, TaskKind::backward));
  EXPECT_EQ(s.devices[4].bubbles[BubbleKind::dp_wait], Time{0});
}

TEST(Lower, OnlyTheFirstGatherAndTheLastScatterAreExposed) {
  Job job = small_job();
  job.parallelism.virtual_pipeline_stages = 2;
  const Simulated overlapped = simulate_job(job);
  job.software.overlap_param_gather = job.software.overlap_grad_reduce = false;
  const Simulated exposed = simulate_job(job);
  const auto gathers = [](const Simulated& s) {
    return collectives(s, {0}, TaskKind::dp_all_gather);
  };
  const auto scatters = [](const Simulated& s) {
    return collectives(s, {0}, TaskKind::dp_reduce_scatter);
  };
  const auto& hidden = overlapped.devices[0].bubbles;
  EXPECT_EQ(hidden[BubbleKind::dp_all_gather], gathers(overlapped).front());
  EXPECT_EQ(hidden[BubbleKind::dp_reduce_scatter], scatters(overlapped).back());
  const auto& seen = exposed.devices[0].bubbles;
  EXPECT_EQ(seen[BubbleKind::dp_all_gather], sum(gathers(exposed)));
  EXPECT_EQ(seen[BubbleKind::dp_reduce_scatter], sum(scatters(exposed)));
}

// Without a pipeline there is one chunk. Its gradients leave in buckets while its last backward
// still runs, so of several buckets only the last is exposed; without overlap all of them are.
TEST(Lower, GradientsLeaveInBucketsDuringTheLastBackward) {
  Job job = small_job();
  job.parallelism.pipeline_model_parallel_size = 1;
  job.parallelism.tensor_model_parallel_size = 1;
  job.parallelism.data_parallel_size = 16;
  job.parallelism.zero_stage = 0;
  job.model.encoders.clear();
  job.data.tokens_per_sample = 32768;  // enough to compute while gradients travel
  const Simulated s = simulate_job(job);
  const std::vector<Time> reductions = collectives(s, {0}, TaskKind::dp_reduce_scatter);
  // Of 40 million parameters: head and a block (33 + 12 million), 4 blocks, 3 and the embedding.
  EXPECT_EQ(reductions.size(), 3U);
  EXPECT_EQ(s.devices[0].bubbles[BubbleKind::dp_reduce_scatter], reductions.back());
  job.software.overlap_grad_reduce = false;
  const Simulated at_the_end = simulate_job(job);
  EXPECT_EQ(at_the_end.devices[0].bubbles[BubbleKind::dp_reduce_scatter],
            sum(collectives(at_the_end, {0}, TaskKind::dp_reduce_scatter)));
}

TEST(Lower, WithoutGatheringAheadAllGathersAreExposed) {
  Job job = small_job();
  job.parallelism.zero_stage = 3;
  job.parallelism.pipeline_model_parallel_size = 1;
  job.parallelism.data_parallel_size = 8;
  job.software.zero3_prefetch_layers = 0;
  const Simulated late = simulate_job(job);
  EXPECT_EQ(late.devices[0].bubbles[BubbleKind::dp_all_gather],
            sum(collectives(late, {0}, TaskKind::dp_all_gather)));
}

// A frozen encoder has nothing to do backward: a stage of it alone waits for the other's backwards,
// whose four it has as well, and updates nothing.
TEST(Lower, FrozenEncodersOnlyRunForward) {
  Job job = small_job();
  job.parallelism = {.pipeline_model_parallel_size = 2, .global_batch_size = 4};
  job.model.encoders[0].trained = false;
  JobCosts costs(job);
  const std::size_t layers = layers_of(job.model).size();  // an embedding and six blocks are first
  const Program program = to_program(job, plan_of(job, {7, layers - 7}), costs.context());
  Time forward{}, backward{};
  for (const TaskId t : on_stream(program, {0}, StreamKind::compute)) {
    const Task& task = program.tasks()[t.value];
    if (task.kind == TaskKind::forward) forward += task.duration;
    if (task.kind == TaskKind::backward) backward += task.duration;
  }
  const MicroBatch mb = plans::uniform_micro_batch(job);
  Time expected{};
  for (std::size_t i = 0; i < 7; ++i)
    expected += costs.layers.total(layers_of(job.model)[i], mb, Recompute::none).forward.time;
  EXPECT_EQ(forward, expected * (4 / job.parallelism.micro_batch_size));
  EXPECT_EQ(backward, Time{0});
}

// 1F1B keeps min(p - r, m) micro-batches in flight on rank r.
TEST(Lower, EarlierStagesHoldMoreMicroBatches) {
  Job job = small_job();
  job.model.encoders.clear();  // equal stages of two blocks each
  job.options["partition"] = std::string("layers");
  const Simulated s = simulate_job(job);
  const auto memory = memory_profile(s.program, s.timeline);
  const auto kept = [&](std::size_t device) {  // what a backward works with comes on top
    Bytes most{};
    for (const MemoryPoint& p : memory[device]) most = std::max(most, p.bytes - p.working);
    return static_cast<double>(most.value);
  };
  const double one = kept(2) / 2;
  EXPECT_NEAR(kept(1), 3 * one, one * 0.01);
}

}  // namespace
}  // namespace mllmsim
