// The critical path of a step, added up by stage and by what is being done.
#pragma once

#include <vector>

#include "results/run/run_result.hpp"
#include "sim/kernel/simulation.hpp"

namespace mllmsim::results {

// By stage, then by kind; their times add up to the step. `ranks`: devices of one replica.
std::vector<PathRow> path_rows(const Program& program, const Timeline& timeline, int ranks);

}  // namespace mllmsim::results
