// Plan -> Program: the tasks that every simulated device runs in one step.
//
// A device is one pipeline rank of one replica; device = replica * pp + rank. If the plan has a
// single replica it stands for all of them: they do the same at the same time, and shared links
// carry the load of all. `stage` granularity makes one task of a pass through a chunk (one a layer
// under zero_stage 3); `kernel` one task a kernel, tp collectives on their own stream. Durations
// are sums of the same kernel times, so both granularities take the same time.
#pragma once

#include "cost_models/layers/layer_costs.hpp"
#include "sim/cluster.hpp"
#include "sim/program.hpp"
#include "strategies/job.hpp"
#include "strategies/plan.hpp"

namespace mllmsim {

// Where durations come from. Not needed if the job gives its times.
class PlanCosts;

struct CostContext {
  const Network& network;
  const KernelCosts& kernels;
  LayerCosts& layers;
};

// Parameters of a chunk on one GPU: 1/tp of its layers'.
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

// `plan_costs` are those of the plan's micro-batches, if they are known already.
Program lower(const Job& job, const Plan& plan, const CostContext* costs,
              const PlanCosts* plan_costs = nullptr);

}  // namespace mllmsim
