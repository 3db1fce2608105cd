// The run of a job with costs that somebody keeps: what simulate() and Simulator have in common.
// Private to this folder.
#pragma once

#include "strategies/job/cost_context.hpp"
#include "strategies/run/simulate.hpp"

namespace mllmsim::run {

class KnownReplays;

// known: replays of earlier jobs that have the same costs; none are kept, if null.
Outcome simulate_with(CostContext costs, const Job& job, const RunOptions& options,
                      KnownReplays* known = nullptr);

}  // namespace mllmsim::run
