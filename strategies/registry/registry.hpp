// The strategies there are: what `mllmsim list` shows, the scenario reader accepts and the property
// tests run. Shipped ones stand in one list in registry.cpp, a line each.
#pragma once

#include <string>
#include <vector>

#include "strategies/job/strategy.hpp"

namespace mllmsim {

// By name.
const std::vector<Strategy>& strategies();
// Null if there is none of that name.
const Strategy* find_strategy(const std::string& name);

// Adds one of your own. Call it at start-up, before other threads read scenarios or simulate:
// nothing is locked, and references into strategies() end here. A name that is taken is a bug.
void register_strategy(Strategy strategy);

// Plans with the job's own strategy; see make_plan in strategy.hpp.
Plan make_plan(const Job& job, const CostContext& costs);

}  // namespace mllmsim
