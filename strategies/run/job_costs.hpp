// What a job's plans are costed with, kept together.
#pragma once

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/lower/known_routes.hpp"

namespace mllmsim::run {

costs::LayerCosts layer_costs(const Job& job, const costs::KernelCosts& kernels);

// Refers to the job's kernel costs. Layer costs and routes remember what they were asked, so one
// per thread.
class JobCosts {
 public:
  JobCosts(const Job& job, const costs::KernelCosts& kernels)
      : network_(job.cluster), kernels_(kernels), layers_(layer_costs(job, kernels)) {}
  CostContext context() { return {network_, routes_, kernels_, layers_}; }

 private:
  Network network_;
  lower::KnownRoutes routes_{network_};
  const costs::KernelCosts& kernels_;
  costs::LayerCosts layers_;
};

}  // namespace mllmsim::run
