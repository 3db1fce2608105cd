#include "strategies/run/job_costs.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::run {

costs::LayerCosts layer_costs(const Job& job, const costs::KernelCosts& kernels) {
  return {job.model, job.parallelism, job.software, kernels, job.cluster};
}

}  // namespace mllmsim::run
