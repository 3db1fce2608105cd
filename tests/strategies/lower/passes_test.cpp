// Into how many tasks a pass is cut, and in which order they are on their streams.
#include "strategies/lower/passes.hpp"

#include <gtest/gtest.h>

#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
using namespace lower;
namespace {

TEST(Passes, AreOneTaskEachInScheduleOrder) {
  Job job = five_layers();
  job.parallelism.global_batch_size = 2;
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {5}), costs.context());
  EXPECT_EQ(letters(program, on_stream(program, {0}, StreamKind::compute)), "FBFBO");
}

// Of 4 micro-batches, the first forward and the last backward of rank 0's chunk 0, if their
// collectives overlap.
TEST(Passes, AreCutByLayerWhereBucketsAre) {
  Job job;
  job.parallelism.data_parallel_size = 2;
  job.parallelism.zero_stage = 1;
  EXPECT_TRUE(by_layer(job, 4, 0, {true, 0, 0}));
  EXPECT_TRUE(by_layer(job, 4, 0, {false, 3, 0}));
  EXPECT_FALSE(by_layer(job, 4, 0, {true, 1, 0}));
  EXPECT_FALSE(by_layer(job, 4, 0, {false, 2, 0}));
  EXPECT_FALSE(by_layer(job, 4, 0, {true, 0, 1}));
  EXPECT_FALSE(by_layer(job, 4, 1, {true, 0, 0}));
  job.software.overlap_param_gather = job.software.overlap_grad_reduce = false;
  EXPECT_FALSE(by_layer(job, 4, 0, {true, 0, 0}));
  EXPECT_FALSE(by_layer(job, 4, 0, {false, 3, 0}));
}

TEST(Passes, AreNotCutForASingleReplicaButForShards) {
  Job job;
  job.parallelism.zero_stage = 1;
  EXPECT_FALSE(by_layer(job, 4, 0, {true, 0, 0}));
  job.parallelism.zero_stage = 3;
  EXPECT_TRUE(by_layer(job, 4, 0, {true, 2, 0}));
}

// One after the other, though on two streams: a collective waits for the kernel before it, and the
// kernel after it for the collective.
TEST(Passes, KernelsAndTpCollectivesTakeTurns) {
  Job job = five_layers();
  job.granularity = Granularity::kernel;
  job.parallelism.tensor_model_parallel_size = 2;
  JobCosts costs(job);
  const auto [program, passes] = to_program_with_passes(job, plan_of(job, {5}), costs.context());
  const PassSpan& forward = passes[0][0];
  int changes = 0;
  for (std::uint32_t t = forward.first.value; t < forward.last.value; ++t) {
    if (program.tasks()[t].stream == program.tasks()[t + 1].stream) continue;
    EXPECT_TRUE(joined(program, {t}, {t + 1}));
    ++changes;
  }
  // An all-reduce after the embedding, two in each block, and what the loss of the head adds up.
  EXPECT_EQ(changes, 2 * (1 + 2 * 3 + 3));
}

// No kernel in a frozen encoder's backward: an empty task keeps the order.
TEST(Passes, ALayerWithoutKernelsIsAnEmptyTask) {
  Job job = small_job();
  job.granularity = Granularity::kernel;
  job.parallelism = {};
  job.model.encoders[0].trained = job.model.encoders[0].projector_trained = false;
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {18}), costs.context());
  std::int64_t empty = 0;
  for (const Task& task : program.tasks())
    if (program.text(task.label).ends_with(" nothing")) ++empty;
  EXPECT_EQ(empty, 8);  // embedding, 6 blocks, projector
}

// At most held by the first device.
Bytes most(Job job, const Plan& plan, JobCosts& costs, Granularity granularity) {
  job.granularity = granularity;
  return peak(simulate_plan(job, plan, costs.context()).memory().front());
}

// Recomputed blocks work with more than the head behind them. When the backward comes to the last
// block, the head has given back what it saved, at either granularity.
TEST(Passes, ABackwardGivesBackLayerByLayer) {
  Job job = five_layers();
  job.recompute.llm = Recompute::full;
  job.parallelism.micro_batch_size = job.parallelism.global_batch_size = 1;
  JobCosts costs(job);
  const Plan plan = plan_of(job, {5});
  Bytes held{}, expected{};
  for (const PlannedLayer& p : plan.stages[0][0]) {
    const LayerTotals t = costs.layers.total(p.layer, plan.micro_batches[0][0], p.recompute);
    held += t.saved;
    expected = std::max(expected, held + t.working);
  }
  EXPECT_EQ(most(job, plan, costs, Granularity::kernel), expected);
  EXPECT_EQ(most(job, plan, costs, Granularity::stage), expected);
}

// Three blocks of which two recompute together and the third by itself. Two inputs stay; the
// backward of the third brings back its own, that of the second all of both but the first's input.
TEST(Passes, BlocksThatRecomputeTogetherKeepOneInputAndComeBackTogether) {
  Job job = five_layers();
  job.recompute.llm = Recompute::full;
  job.recompute.num_layers = 2;
  job.parallelism.micro_batch_size = job.parallelism.global_batch_size = 1;
  JobCosts costs(job);
  const Plan plan = plan_of(job, {5});
  const MicroBatch& mb = plan.micro_batches[0][0];
  const auto total = [&](std::size_t i, Recompute r) {
    return costs.layers.total(plan.stages[0][0][i].layer, mb, r);
  };
  const Bytes embedding = total(0, Recompute::none).saved, input = total(1, Recompute::full).saved;
  const Bytes all = total(1, Recompute::none).saved, gradients = total(1, Recompute::none).working;
  const LayerTotals head = total(4, Recompute::none);
  const Bytes expected = std::max({embedding + all * 2 + gradients,      // first two blocks
                                   embedding + input + all + gradients,  // the third
                                   embedding + input * 2 + head.saved + head.working});
  EXPECT_EQ(most(job, plan, costs, Granularity::kernel), expected);
  EXPECT_EQ(most(job, plan, costs, Granularity::stage), expected);
}

// R both blocks, B their backwards: 1 and 2 are of the first and of the second.
TEST(Passes, BlocksThatRecomputeTogetherRunAgainBeforeTheBackwardOfTheLast) {
  Job job = five_layers();
  job.granularity = Granularity::kernel;
  job.recompute.llm = Recompute::full;
  job.recompute.num_layers = 3;
  JobCosts costs(job);
  const Program program = to_program(job, plan_of(job, {5}), costs.context());
  std::string order;
  for (const TaskId t : on_stream(program, {0}, StreamKind::compute)) {
    const std::string_view name = program.text(program.tasks()[t.value].label);
    const TaskKind kind = program.tasks()[t.value].kind;
    if (name == "llm attention" && kind == TaskKind::recompute) order += 'R';
    if (name == "llm attention backward") order += 'B';
  }
  EXPECT_EQ(order, "RRRBBB");
}

// Of a chunk's three blocks the first one.
TEST(Passes, BlockRecomputeIsOfTheFirstBlocksOfAChunk) {
  Job job = five_layers();
  job.recompute.llm = Recompute::full;
  job.recompute.method = RecomputeMethod::block;
  job.recompute.num_layers = 1;
  const Plan plan = plan_of(job, {5});
  std::vector<Recompute> blocks;
  for (const PlannedLayer& p : plan.stages[0][0])
    if (p.layer.kind == LayerKind::block) blocks.push_back(p.recompute);
  EXPECT_EQ(blocks, (std::vector{Recompute::full, Recompute::none, Recompute::none}));
}

// Frozen blocks in front of a trained one: no backward runs through them, so that they would be
// recomputed costs nothing.
TEST(Passes, FrozenLayersWorkWithNothing) {
  Job job = small_job();
  job.parallelism = {};
  job.recompute.encoder = Recompute::full;
  job.model.encoders[0].trained = job.model.encoders[0].projector_trained = false;
  JobCosts costs(job);
  const Plan plan = plan_of(job, {layers_of(job.model).size()});
  const Bytes by_stage = peak(simulate_plan(job, plan, costs.context()).memory().front());
  job.granularity = Granularity::kernel;
  EXPECT_EQ(peak(simulate_plan(job, plan, costs.context()).memory().front()), by_stage);
}

// PyTorch's DDP: of two micro-batches the second one's backward ends with a copy of all gradients
// into buckets, and replicas reduce those.
TEST(Passes, TheLastBackwardCopiesGradientsIntoBuckets) {
  Job job = five_layers();
  job.parallelism = {.data_parallel_size = 2, .global_batch_size = 4};
  job.software.overlap_grad_reduce = false;
  job.software.ddp_copies = true;
  for (const Granularity g : {Granularity::stage, Granularity::kernel}) {
    job.granularity = g;
    JobCosts costs(job);
    const Program program = to_program(job, plan_of(job, {5}), costs.context());
    std::vector<TaskId> copies;
    for (const TaskId t : on_stream(program, {0}, StreamKind::compute))
      if (program.text(program.tasks()[t.value].label) == "gradients into buckets")
        copies.push_back(t);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(program.tasks()[copies[0].value].micro_batch, 1);
    const TaskId reduction = on_stream(program, {0}, StreamKind::dp).front();
    EXPECT_TRUE(joined(program, copies[0], reduction));
  }
}

// Gradients that the first micro-batch makes: a step starts without them, so its first backward
// finds as much less, and has left all of them when it ends. Of later micro-batches nothing
// changes. At either granularity the same.
TEST(Passes, GradientsAppearInTheFirstBackward) {
  Job job = five_layers();
  job.parallelism.global_batch_size = 2;
  const auto points = [&](bool empty, Granularity granularity) {
    job.software.grads_start_empty = empty;
    job.granularity = granularity;
    const Simulated s = simulate_job(job);
    return memory_profile(s.program, s.timeline)[0];
  };
  std::int64_t all = 0;
  for (const Layer& layer : layers_of(job.model))
    all += trained_rank_parameters(job.model, layer, job.parallelism).all();
  const Bytes gradients{4 * all};
  for (const Granularity g : {Granularity::stage, Granularity::kernel}) {
    const auto always = points(false, g), later = points(true, g);
    EXPECT_EQ(later.front().bytes, always.front().bytes - gradients);
    EXPECT_EQ(later.back().bytes, Bytes{});
    EXPECT_EQ(peak(later), peak(always));  // that of the second micro-batch
  }
}

}  // namespace
}  // namespace mllmsim
