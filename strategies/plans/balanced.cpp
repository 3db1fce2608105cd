// Layers cut into virtual_pipeline_stages * pp model stages so that the slowest takes as little
// time as can be (forward + backward + recompute of one micro-batch, from the cost model), by
// dynamic programming; interleaved 1F1B.
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"

namespace mllmsim::plans {
namespace {

Plan plan_balanced(const Job& job, const CostContext& costs) {
  const std::vector<Layer> layers = layers_of(job.model);
  const auto pass = pass_of(job);
  const MicroBatch mb = typical_micro_batch(job, pass.get());
  const auto sizes = cut_by_time(job, costs.layers, layers, mb, model_stages(job));
  return plan_from(job, stages_from(job, layers, sizes), pass);
}

}  // namespace

Strategy balanced_strategy() {
  return {"balanced",
          "interleaved 1F1B, layers cut by dynamic programming into virtual stages of equal time",
          {},
          plan_balanced};
}

}  // namespace mllmsim::plans
