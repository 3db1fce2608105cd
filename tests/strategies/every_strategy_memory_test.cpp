// Memory: what is taken is given back, and what should need less needs no more.
#include "strategies/run/simulate.hpp"
#include "strategies/step/plan_memory.hpp"
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

TEST(EveryStrategy, GivesBackTheMemoryOfEveryGpu) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const auto profiles = planned.simulate().memory();
    for (std::size_t d = 0; d < profiles.size(); ++d) {
      // Gradients that are not there yet are counted in what is held.
      Bytes missing{};
      if (planned.job.software.grads_start_empty)
        missing = step::rank_state(planned.job, planned.plan,
                                   static_cast<int>(d % planned.plan.stages.size()))
                      .held[Holding::gradients];
      for (const MemoryPoint& point : profiles[d]) RC_ASSERT(point.bytes + missing >= Bytes{0});
      RC_ASSERT(profiles[d].back().bytes == Bytes{0});
    }
  });
}

std::vector<Bytes> peaks(const SimulatedStep& step) {
  std::vector<Bytes> out;
  for (const std::vector<MemoryPoint>& profile : step.memory()) out.push_back(peak(profile));
  return out;
}

TEST(EveryStrategy, NeedsAsMuchMemoryAtBothGranularities) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    Job other = planned.job;
    other.granularity =
        other.granularity == Granularity::stage ? Granularity::kernel : Granularity::stage;
    RC_ASSERT(peaks(simulate_as(other, planned.plan)) == peaks(planned.simulate()));
  });
}

TEST(EveryStrategy, FitsInMoreMemoryIfItFitsInLess) {
  hold_for_every_strategy([](const std::string& strategy) {
    Job job = random_job(strategy);
    job.software.memory_reserve = {};
    job.data.steps = 2;
    const PlannedJob planned(job);  // discards what cannot be planned
    JobCosts costs(job);
    const Bytes needed = simulate(job, *costs.kernels, {.timeline = false}).peak_memory;
    job.cluster.gpu_memory = scaled(needed, *rc::gen::element(0.5, 0.8, 0.9, 1.0));
    const bool fits = simulate(job, *costs.kernels, {.timeline = false}).fits;
    job.cluster.gpu_memory = scaled(job.cluster.gpu_memory, *rc::gen::element(1.02, 1.1, 1.3, 2.0));
    RC_ASSERT(!fits || simulate(job, *costs.kernels, {.timeline = false}).fits);
  });
}

// Stage 1 shards what stage 0 keeps whole, and nothing else changes.
TEST(EveryStrategy, NeedsNoMoreMemoryUnderZeroStage1ThanUnder0) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    if (planned.job.parallelism.zero_stage == 3) return;
    Job stage_0 = planned.job, stage_1 = planned.job;
    stage_0.parallelism.zero_stage = 0;
    stage_1.parallelism.zero_stage = 1;
    const auto needed = [&](const Job& job) {
      return step::peak_memory(job, planned.plan, simulate_as(job, planned.plan).memory());
    };
    RC_ASSERT(needed(stage_1) <= needed(stage_0));
  });
}

// Stage 2 shards gradients too, but for a bucket of those that one micro-batch has made. With all
// parameters W in it, n replicas need
//   4 W / n + 2 W   instead of   4 W
// bytes of gradients: no more from 2 replicas on, if buckets are of half the precision and both are
// there all step long.
TEST(EveryStrategy, NeedsNoMoreMemoryUnderZeroStage2ThanUnder1) {
  for (const char* strategy : {"balanced", "baseline", "omnibal"})
    EXPECT_TRUE(rc::check(strategy, [&] {
      Job job = random_job(strategy);
      job.software.precision = Precision{};
      job.software.grads_start_empty = false;
      job.parallelism.zero_stage = 2;
      PlannedJob planned(job);
      if (job.parallelism.gradient_ranks() == 1 || job.parallelism.experts_apart()) return;
      Job stage_1 = job;
      stage_1.parallelism.zero_stage = 1;
      const auto needed = [&](const Job& as) {
        return step::peak_memory(as, planned.plan, simulate_as(as, planned.plan).memory());
      };
      RC_ASSERT(needed(job) <= needed(stage_1));
    }));
}

// Stage 3 shards weights and gradients too, and gathers layers while they are used. If all of them
// were gathered at once and had their gradients beside them, 4 replicas would still need
//   (2 + g + 12) W / 4 + 2 W + g' W   instead of   (2 + g) W + 12 W / 4
// bytes for W parameters, with g = 4 and g' = 2 bytes of gradients: 8.5 W, not 9 W. With fewer
// replicas, gradients that are smaller or not there yet, or frozen layers a model of few layers
// does need more.
TEST(EveryStrategy, NeedsNoMoreMemoryUnderZeroStage3ThanUnder1) {
  for (const char* strategy : {"zero3", "fsdp"})
    EXPECT_TRUE(rc::check(strategy, [&] {
      Job job = random_job(strategy);
      job.parallelism.data_parallel_size = 4;
      // Copies of parameters, or parameters that stay, are memory against time.
      job.parallelism.data_parallel_replicate_degree = job.parallelism.zero_hpz_partition_size = 1;
      job.parallelism.reshard_after_forward = true;
      job.parallelism.global_batch_size = 4 * job.parallelism.micro_batch_size;
      job.cluster = random_cluster(job.parallelism);
      job.data = random_data(job.parallelism);
      job.software.precision = Precision{};
      job.software.grads_start_empty = false;
      job.model.llm.trained = true;
      for (Encoder& e : job.model.encoders) e.trained = e.projector_trained = true;
      PlannedJob planned(job);
      Job stage_1 = job;
      stage_1.parallelism.zero_stage = 1;
      RC_ASSERT(
          step::peak_memory(job, planned.plan, planned.simulate().memory()) <=
          step::peak_memory(stage_1, planned.plan, simulate_as(stage_1, planned.plan).memory()));
    }));
}

}  // namespace
}  // namespace mllmsim
