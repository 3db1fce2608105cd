// The end of a step: when a device has done its last backwards it meets all others (gradient norm,
// overflow check), then runs the optimizer on the parameters it updates: 1/dp of those it holds
// with zero_stage 1 to 3, all of them with 0. Then weights of quantised products are quantised: for
// the next step's first micro-batch, and every step has one.
#pragma once

#include <vector>

#include "strategies/job/cost_context.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// `encoders_done`: by device, the last task of encoders beside the LLM's pipeline; may be nothing.
void add_optimizer(StepBuilder& step, const CostContext& costs,
                   const std::vector<TaskId>& encoders_done);

}  // namespace mllmsim::lower
