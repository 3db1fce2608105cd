#include "strategies/run/job_costs.hpp"

#include "sim/base/errors.hpp"
#include "strategies/job/strategy.hpp"

namespace mllmsim::run {

costs::LayerCosts layer_costs(const Job& job, const costs::KernelCosts& kernels) {
  return {job.model, job.parallelism, job.software, kernels, job.cluster};
}

Plan plan_job(const Job& job, const CostContext& costs) {
  const StrategyInfo* strategy = find_strategy(job.strategy);
  check(strategy != nullptr, "a job names a registered strategy");
  return strategy->make()->plan(job, costs);
}

}  // namespace mllmsim::run
