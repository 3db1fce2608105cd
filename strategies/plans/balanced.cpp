// Layers cut into virtual_pipeline_stages * pp model stages of equal time (forward + backward +
// recompute of one micro-batch, from the cost model), by dynamic programming; interleaved 1F1B. Of
// several such cuts the one with the shortest simulated step (interleaved_cut.hpp).
#include "strategies/plans/interleaved_cut.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::plans {
namespace {

using Sizes = std::vector<std::size_t>;

Plan plan_balanced(const Job& job, const CostContext& costs) {
  const std::vector<Layer> layers = layers_of(job.model);
  const auto pass = pass_of(job);
  const MicroBatch mb = typical_micro_batch(job, pass.get());
  const auto plan_of = [&](const Sizes& sizes) {
    return plan_from(job, stages_from(job, layers, sizes), pass);
  };
  const auto ranks = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size);
  const std::size_t stages = model_stages(job);
  if (stages == ranks) return plan_of(cut_by_time(job, costs.layers, layers, mb, stages));

  // One replica stands for all.
  return plan_of(interleaved_cut(job, costs, layers, mb, [&](const Sizes& sizes) {
    Plan plan = plan_of(sizes);
    plan.micro_batches.resize(1);
    return simulate_plan(job, plan, costs).span();
  }));
}

}  // namespace

Strategy balanced_strategy() {
  return {"balanced",
          "interleaved 1F1B, layers cut by dynamic programming into virtual stages of equal time",
          {},
          plan_balanced};
}

}  // namespace mllmsim::plans
