// What might make a run quicker, or make it fit: the changes that `explain` simulates.
//
// Recompute, micro-batch, tp, pp, vpp, ZeRO, sequence and context parallelism, the optimizer on the
// CPU, data, and every other strategy. What only frees memory is tried if the run does not fit.
#pragma once

#include <vector>

#include "results/analysis/explain.hpp"

namespace mllmsim::analysis {

// Not simulated yet; those that cannot apply have a note that says why.
std::vector<Remedy> remedies_for(const Explanation& explanation,
                                 const scenarios::Scenario& scenario);

// Those that free memory with the strategy as it is: recompute, sizes, ZeRO (of `baseline` with
// parameters sharded too), offload.
std::vector<Remedy> remedies_to_fit(const scenarios::Scenario& scenario);

// Two remedies at once, for a run that no single one makes fit with its strategy: of those that do
// not, the one that needs least memory with each other one, and the six that need least with each
// other.
std::vector<Remedy> pairs_of(const std::vector<Remedy>& simulated);

}  // namespace mllmsim::analysis
