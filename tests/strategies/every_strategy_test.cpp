// What must hold for every registered strategy on random small jobs. New strategies are covered by
// being registered.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "tests/strategies/small_job.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
namespace {

Job random_job(const std::string& strategy) {
  Job job = small_job();
  job.strategy = strategy;
  Parallelism& p = job.parallelism;
  p.tensor_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.pipeline_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.data_parallel_size = *rc::gen::element(1, 2);
  p.virtual_pipeline_stages = p.pipeline_model_parallel_size > 1 ? *rc::gen::inRange(1, 3) : 1;
  p.zero_stage = *rc::gen::element(0, 1);
  if (strategy == "zero3" || strategy == "fsdp") {
    p.pipeline_model_parallel_size = p.virtual_pipeline_stages = 1;
    p.zero_stage = 3;
  }
  p.sequence_parallel = *rc::gen::arbitrary<bool>();
  p.global_batch_size = p.micro_batch_size * p.data_parallel_size * p.pipeline_model_parallel_size *
                        *rc::gen::inRange(1, 5);
  job.cluster.nodes = (p.world_size() + 3) / 4;
  job.recompute.encoder = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  job.recompute.llm = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  job.model.encoders[0].trained = *rc::gen::arbitrary<bool>();
  job.model.llm.trained = *rc::gen::arbitrary<bool>();
  job.granularity = *rc::gen::element(Granularity::stage, Granularity::kernel);
  return job;
}

// The simulation checks itself: every task once, no overlap, memory returned. Every GPU is busy or
// in a bubble of a known kind, all step long.
TEST(EveryStrategy, PlansWhatTheSimulationAccepts) {
  for (const Strategy& strategy : strategies())
    EXPECT_TRUE(rc::check(strategy.name, [&] {
      const Job job = random_job(strategy.name);
      const Simulated s = simulate_job(job);
      for (const DeviceTime& d : s.devices) {
        Time sum = d.busy;
        for (const Time bubble : d.bubbles.times) sum += bubble;
        RC_ASSERT(sum == s.timeline.span);
      }
    }));
}

TEST(EveryStrategy, HoldsEveryLayerOnceAndInOrder) {
  for (const Strategy& strategy : strategies())
    EXPECT_TRUE(rc::check(strategy.name, [&] {
      const Job job = random_job(strategy.name);
      const Simulated s = simulate_job(job);
      std::vector<Layer> held;
      if (s.plan.encoders)
        for (const Chunk& stage : s.plan.encoders->stages)
          for (const PlannedLayer& p : stage) held.push_back(p.layer);
      const auto chunks = s.plan.stages.front().size();
      for (std::size_t c = 0; c < chunks; ++c)
        for (const auto& stage : s.plan.stages)
          for (const PlannedLayer& p : stage[c]) held.push_back(p.layer);
      RC_ASSERT(held == layers_of(job.model));
    }));
}

}  // namespace
}  // namespace mllmsim
