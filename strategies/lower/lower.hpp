// Plan -> Program: the tasks that every simulated device runs in one step.
//
// A device is one pipeline rank of one replica; device = replica * pp + rank. If the plan has a
// single replica it stands for all of them: they do the same at the same time, and shared links
// carry the load of all. Granularity:
//
//   stage    one task per pass through a chunk; under zero_stage 3 one per layer
//   kernel   one task per kernel, tp collectives on their own stream
//
// Durations are sums of the same kernel times, so both granularities take the same time.
#pragma once

#include "cost_models/layers/layer_costs.hpp"

#include "sim/kernel/program.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::lower {

class PlanCosts;

// Parameters of a chunk on one GPU: 1/tp of its layers'.
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

// `plan_costs` are those of the plan's micro-batches, if they are known already.
Program lower(const Job& job, const Plan& plan, const CostContext* costs,
              const PlanCosts* plan_costs = nullptr);

// Where the LLM's passes of the first replica begin and end in a program: [rank][index in its
// schedule]. The compute and tp tasks from first to last are the pass's kernels, in order.
struct PassSpan {
  TaskId first, last;
};
Program lower(const Job& job, const Plan& plan, const CostContext* costs,
              std::vector<std::vector<PassSpan>>& passes);

}  // namespace mllmsim::lower
