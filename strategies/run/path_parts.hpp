// The critical path of a step, added up by stage and by what is being done.
#pragma once

#include <vector>

#include "sim/kernel/simulation.hpp"
#include "strategies/run/outcome.hpp"

namespace mllmsim::run {

// By stage, then by kind; their times add up to the step. `ranks`: devices of one replica.
std::vector<PathPart> path_parts(const Program& program, const Timeline& timeline, int ranks);

}  // namespace mllmsim::run
