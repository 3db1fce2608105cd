// OmniBal's partition search and adaptive recompute on cases small enough to work out by hand.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/omnibal/partition_search.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
using namespace omnibal;
using namespace plans;
namespace {

std::vector<Seconds> seconds(std::initializer_list<double> values) {
  std::vector<Seconds> out;
  for (const double v : values) out.push_back(Seconds{v});
  return out;
}

// 12 s over 3 stages: 4 per stage. 3 + 1 = 4; then 8 over 2: 2 + 2 = 4; the rest is 4.
TEST(PartitionSearch, TheGreedyCutEndsAStageNearestToItsShare) {
  EXPECT_EQ(greedy_cut(seconds({3, 1, 2, 2, 1, 3}), 3), (Cut{2, 2, 2}));
}

TEST(PartitionSearch, EveryStageOfAGreedyCutHasALayer) {
  EXPECT_EQ(greedy_cut(seconds({9, 1, 1}), 3), (Cut{1, 1, 1}));
  EXPECT_EQ(greedy_cut(seconds({1, 1, 9}), 3), (Cut{1, 1, 1}));
}

// N = 4 stages and r = 1: 3 positions for each of 3 cuts, as the paper says.
TEST(PartitionSearch, TheRadiusGivesThePapersNumberOfCandidates) {
  PartitionCosts costs;
  costs.forward.assign(16, Seconds{1});
  costs.boundary.assign(16, Bytes{0});
  EXPECT_EQ(ranked_cuts(costs, {4, 4, 4, 4}, 1).size(), 27U);
}

// Equal layers, but the cut behind layer 3 sends 100 MiB less: a spread of 1 s = 1000 ms loses
// against it only if layers are short. Here a layer takes 1 ms.
TEST(PartitionSearch, RanksBySpreadAndBytesSent) {
  PartitionCosts costs;
  costs.forward.assign(8, Seconds{1e-3});
  costs.boundary.assign(8, Bytes{110 << 20});
  costs.boundary[2] = Bytes{10 << 20};
  EXPECT_EQ(ranked_cuts(costs, {4, 4}, 1).front(), (Cut{3, 5}));
}

TEST(PartitionSearch, SimulationDecidesAmongTheBestRanked) {
  PartitionCosts costs;
  costs.forward.assign(8, Seconds{1});
  costs.boundary.assign(8, Bytes{0});
  const auto step_time = [](const Cut& cut) { return Time{cut[0] == 5 ? 1 : 2}; };
  EXPECT_EQ(search_cut(costs, 2, {1, 3}, step_time), (Cut{5, 3}));
  EXPECT_EQ(search_cut(costs, 2, {1, 1}, step_time), (Cut{4, 4}));  // only the best ranked
}

// Times 1 1 1 5: dynamic programming puts the long layer alone; simulation may move the cut.
TEST(PartitionSearch, TheExactSearchMovesCutsWhileTheStepGetsShorter) {
  PartitionCosts costs;
  costs.total = seconds({1, 1, 1, 5});
  const auto shortest_at_one = [](const Cut& cut) { return Time{static_cast<int>(cut[0])}; };
  EXPECT_EQ(exact_cut(costs, 2, shortest_at_one), (Cut{1, 3}));
  const auto as_planned = [](const Cut& cut) { return Time{cut[0] == 3 ? 1 : 2}; };
  EXPECT_EQ(exact_cut(costs, 2, as_planned), (Cut{3, 1}));
}

Job recomputing_job(Bytes gpu_memory) {
  Job job = small_job();
  job.strategy = "omnibal";
  job.recompute.encoder = job.recompute.llm = Recompute::full;
  job.cluster.gpu_memory = gpu_memory;
  use_defaults(job);
  return job;
}

int recomputed(const Plan& plan) {
  int n = 0;
  for (const auto& chunks : plan.stages)
    for (const Chunk& chunk : chunks)
      for (const PlannedLayer& p : chunk) n += p.recompute == Recompute::full;
  return n;
}

TEST(AdaptiveRecompute, NothingIsRecomputedIfEverythingFits) {
  const Job job = recomputing_job(Bytes{1LL << 50});
  JobCosts costs(job);
  EXPECT_EQ(recomputed(make_plan(job, costs.context())), 0);
}

TEST(AdaptiveRecompute, EverythingIsRecomputedIfNothingFits) {
  const Job job = recomputing_job(Bytes{1});
  JobCosts costs(job);
  const Plan plan = make_plan(job, costs.context());
  int blocks = 0;
  for (const Layer& layer : layers_of(job.model)) blocks += layer.kind == LayerKind::block;
  EXPECT_EQ(recomputed(plan), blocks);
}

// Whatever the memory: if recomputing everything fits, so does the plan, and one layer more without
// recomputation would not.
TEST(AdaptiveRecompute, FillsMemoryAndNeverPassesIt) {
  EXPECT_TRUE(rc::check([] {
    const Bytes memory{*rc::gen::inRange<std::int64_t>(5LL << 30, 16LL << 30)};
    const Job job = recomputing_job(memory);
    JobCosts costs(job);
    const MicroBatch mb = uniform_micro_batch(job);
    const Plan plan = make_plan(job, costs.context());
    const auto peaks = peak_memory(job, costs.context(), mb, plan);
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      bool none_free = true;
      for (const PlannedLayer& p : plan.stages[rank].front())
        none_free &= p.layer.kind != LayerKind::block || p.recompute == Recompute::full;
      RC_ASSERT(none_free || peaks[rank] <= memory);
    }
  }));
}

// The two samples of a padded micro-batch are as long as the longer; packed, each is its own.
TEST(Pass, PaddedSequencesAreAsLongAsTheLongest) {
  const Model model = small_job().model;
  const std::vector<Sample> samples = {{2, 300}, {1, 700}};
  const std::vector<SampleIndex> both = {0, 1};
  const MicroBatch padded = micro_batch_of(model, samples, both, Joining::padded);
  EXPECT_EQ(padded.llm.groups, (std::vector<SequenceGroup>{{700, 2}}));
  EXPECT_EQ(padded.encoders[0].sequences(), 3);
  const MicroBatch packed = micro_batch_of(model, samples, both, Joining::packed);
  EXPECT_EQ(packed.llm.groups, (std::vector<SequenceGroup>{{300, 1}, {700, 1}}));
}

Job data_job() {
  Job job = small_job();
  DataSet set;
  for (int i = 0; i < 500; ++i) set.samples.push_back({1 + i % 5, 300 * (1 + i % 5) + i});
  set.sets = {{"all", 0, set.samples.size()}};
  job.data.set = std::make_shared<const DataSet>(std::move(set));
  job.data.samples = 500;
  return job;
}

// 500 samples, 2 per micro-batch, 2 replicas of 8 micro-batches: 32 samples per step, 15 whole
// steps.
TEST(Pass, HasTheWholeStepsOfTheDataSet) {
  Job job = data_job();
  EXPECT_EQ(batches_of(job).steps(), 15);
  job.data.steps = 3;
  EXPECT_EQ(chosen_steps(job, batches_of(job)), (std::vector<std::int64_t>{0, 5, 10}));
}

// No micro-batch of the pass keeps more on any layer than the largest does.
TEST(Pass, NoMicroBatchNeedsMoreMemoryThanTheLargest) {
  const Job job = data_job();
  JobCosts costs(job);
  for (const Batching batching : {Batching::random, Batching::isf}) {
    const Batches pass = batches_of(job, batching);
    const MicroBatch largest = largest_micro_batch(job, pass);
    for (std::int64_t step = 0; step < pass.steps(); ++step)
      for (const auto& replica : micro_batches_of(job, pass, step))
        for (const MicroBatch& mb : replica)
          for (const Layer& layer : layers_of(job.model))
            EXPECT_LE(costs.layers.total(layer, mb, Recompute::none).saved,
                      costs.layers.total(layer, largest, Recompute::none).saved);
  }
}

// Totals without kernel lists are those of the lists.
TEST(Pass, TotalsAreThoseOfTheKernelLists) {
  const Job job = data_job();
  JobCosts costs(job);
  const Batches pass = batches_of(job, Batching::isf);
  const auto replicas = micro_batches_of(job, pass, 0);
  for (const MicroBatch& mb : replicas.front())
    for (const Layer& layer : layers_of(job.model))
      for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
        const LayerTotals listed = totals(costs.layers.cost(layer, mb, r));
        const LayerTotals total = costs.layers.total(layer, mb, r);
        EXPECT_EQ(total.forward.time, listed.forward.time);
        EXPECT_EQ(total.recompute.time, listed.recompute.time);
        EXPECT_EQ(total.backward.time, listed.backward.time);
        EXPECT_EQ(total.saved, listed.saved);
        EXPECT_EQ(total.working, listed.working);
        EXPECT_EQ(total.model_flops.value, listed.model_flops.value);
      }
}

}  // namespace
}  // namespace mllmsim
