// Adaptive recompute (OmniBal, arXiv 2407.20761): with balanced inputs memory is predictable, so
// every stage switches recomputation off for as many layers as fit.
//
// The blocks of a stage that need the least memory come first, so that the most layers are free of
// recomputation. What fits is decided by the memory simulation of a pipeline in which every
// micro-batch is the largest of the pass: no real step needs more.
#pragma once

#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::omnibal {

// Switches recomputation off in plan.stages where that fits into `budget` bytes per GPU. Blocks
// that the job does not recompute stay as they are.
void adapt_recompute(const Job& job, const CostContext& costs, const MicroBatch& largest,
                     Bytes budget, Plan& plan);

// The same for the memory that a GPU has. PyTorch's allocator needs more than is allocated; how
// much shows when steps are replayed: the budget shrinks until they get through.
void adapt_recompute_to_allocator(const Job& job, const CostContext& costs,
                                  const MicroBatch& largest, Plan& plan);

// The memory one GPU of each pipeline rank needs if every micro-batch is `micro_batch`.
std::vector<Bytes> peak_memory(const Job& job, const CostContext& costs,
                               const MicroBatch& micro_batch, const Plan& plan);

}  // namespace mllmsim::omnibal
