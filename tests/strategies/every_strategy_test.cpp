// What must hold of every plan that a registered strategy makes. New strategies are covered by
// being registered.
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

// The simulation checks itself: every task once, no overlap, what is sent is received. Every GPU is
// busy or in a bubble of a known kind, all step long.
TEST(EveryStrategy, KeepsEveryGpuBusyOrInABubbleAllStepLong) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const SimulatedStep step = planned.simulate();
    for (const DeviceTime& d : step.device_times())
      RC_ASSERT(d.busy + d.bubbles.total() == step.span());
  });
}

TEST(EveryStrategy, HoldsEveryLayerOnceAndInOrder) {
  hold_for_every_strategy([](const std::string& strategy) {
    const PlannedJob planned(random_job(strategy));
    const Plan& plan = planned.plan;
    std::vector<Layer> held;
    if (plan.encoders)
      for (const Chunk& stage : plan.encoders->stages)
        for (const PlannedLayer& p : stage) held.push_back(p.layer);
    for (std::size_t c = 0; c < plan.stages.front().size(); ++c)
      for (const auto& stage : plan.stages)
        for (const PlannedLayer& p : stage[c]) held.push_back(p.layer);
    RC_ASSERT(held == layers_of(planned.job.model));
  });
}

TEST(EveryStrategy, TakesAsLongAtBothGranularities) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    Job other = planned.job;
    other.granularity =
        other.granularity == Granularity::stage ? Granularity::kernel : Granularity::stage;
    RC_ASSERT(simulate_as(other, planned.plan).span() == planned.simulate().span());
  });
}

}  // namespace
}  // namespace mllmsim
