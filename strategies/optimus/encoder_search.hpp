// Encoder plans of Optimus: all (pp, tp) that divide the LLM's, those that fit in memory, each with
// the schedules that its micro-batches allow, ranked by the scheduler's estimate of the step.
#pragma once

#include "strategies/optimus/bubble_scheduler.hpp"

namespace mllmsim::optimus {

struct RankedPlan {
  EncoderPlan plan;  // without the ranks' orders
  Time estimate{};
  std::size_t most_waves = 0;  // per group
  Time encoder_time{};         // computation of the encoders on a rank, mean over ranks
};

struct SearchSpace {
  int tp = 0, pp = 0;              // of the encoders; 0: all that divide the LLM's
  std::vector<Bytes> memory_left;  // by rank, beside the LLM's
};

// How many (pp, tp) the search looks at.
std::size_t encoder_plans(const Job& job, const SearchSpace& space);

// Best first; empty only if nothing divides. If nothing fits, the plans that need least memory.
std::vector<RankedPlan> search_encoder_plans(const Job& job, const Plan& llm,
                                             const LlmTimeline& timeline, const CostContext& costs,
                                             const SearchSpace& space, Placement placement);

// What the plan with the most pipeline stages and tp ranks needs on a GPU.
Bytes frugal_encoder_memory(const Job& job, const CostContext& costs, const Plan& llm);

// Fills in the orders.
void order_kernels(const Job& job, const Plan& llm, const LlmTimeline& timeline,
                   const CostContext& costs, Placement placement, RankedPlan& plan);

}  // namespace mllmsim::optimus
