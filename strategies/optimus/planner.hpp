// Encoders into the bubbles of a planned LLM, for every strategy that has one (optimus,
// omnibal+optimus).
//
//   1. simulate the LLM alone, kernel by kernel: its gaps, and the bound no schedule can pass
//   2. rank encoder plans by what the bubble scheduler makes of them (encoder_search,
//      bubble_scheduler)
//   3. simulate the best of them, coarse and fine, and keep the shortest step
#pragma once

#include "strategies/job/strategy.hpp"

namespace mllmsim::optimus {

std::vector<Layer> llm_layers(const Model& model);

// The LLM's layers alone, in model stages of equal time. `pass` may be null.
Plan plan_of_llm(const Job& job, const CostContext& costs,
                 std::shared_ptr<const data::Batches> pass);

// Adds the encoders, and facts about them. `llm` holds only the LLM's layers.
Plan plan_encoders(const Job& job, const CostContext& costs, Plan llm);

// Options that plan_encoders reads, and what no range can say of them: sizes divide the LLM's.
std::vector<OptionSpec> encoder_options();
std::vector<Problem> check_encoder_sizes(const Job& job);

}  // namespace mllmsim::optimus
