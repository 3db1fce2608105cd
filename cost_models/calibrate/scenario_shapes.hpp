// The kernels of a scenario's run, asked of the simulator that is installed beside this program
// (mllmsim calibrate gaps FILE --all). The measuring program itself knows no scenarios.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibrate/task.hpp"

namespace mllmsim::calibrate {

// Throws UserError if the simulator refuses the scenario (it has said why), EnvironmentError if it
// cannot be run.
std::vector<Task> scenario_shapes(const std::string& scenario);

}  // namespace mllmsim::calibrate
