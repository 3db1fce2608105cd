// What a strategy with encoders in bubbles says of its plan: which encoder plan it chose, the
// bound, what is hidden, and the memory over the most frugal baseline.
#pragma once

#include <vector>

#include "sim/account/bubbles.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/optimus/llm_timeline.hpp"

namespace mllmsim::optimus {

// A plan and what its simulation gave.
struct SimulatedPlan {
  Plan plan;
  Time span{};
  Time encoder_time{};
  double hidden = 1;  // share of the encoders' computation
  Bytes memory{};
};

// The share of the encoders' computation that runs where the LLM alone leaves its GPU idle: between
// its kernels, and as long before the first and after the last as it waits there anyway.
double hidden_share(const Program& program, const Timeline& timeline, const LlmTimeline& alone);

// Adds facts to the chosen plan. `bound` and `alone`: step and GPU times of the LLM without
// encoders; `frugal`: memory of the most frugal baseline.
void add_encoder_facts(const Job& job, const SimulatedPlan& coarse, Time bound,
                       const std::vector<DeviceTime>& alone, Bytes frugal, SimulatedPlan& chosen);

}  // namespace mllmsim::optimus
