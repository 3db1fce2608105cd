// What OmniBal's strategies share: their options, data as they pack them, and the balanced
// partition of a list of layers.
#pragma once

#include <vector>

#include "strategies/job/strategy.hpp"

namespace mllmsim::omnibal {

std::vector<OptionSpec> omnibal_options();
bool is_on(const Job& job, const char* option);

// The job with its data in packs, if option `data` says so.
Job with_packs(const Job& job);

// Searches the cut of the layers into model stages whose first step is simulated to be the fastest;
// `around` is the plan without its stages.
std::vector<std::vector<Chunk>> balanced_partition(const Job& packed, const CostContext& costs,
                                                   const std::vector<Layer>& layers,
                                                   const Plan& around);

}  // namespace mllmsim::omnibal
