// The critical path of a step, added up by stage and by what is being done.
#pragma once

#include <vector>

#include "results/run_result.hpp"
#include "sim/simulation.hpp"

namespace mllmsim {

// By stage, then by kind; their times add up to the step. `ranks`: devices of one replica.
std::vector<PathRow> path_rows(const Program& program, const Timeline& timeline, int ranks);

}  // namespace mllmsim
