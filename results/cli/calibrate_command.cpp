// mllmsim calibrate fit | import | show | scale: the work is in cost_models.
#include "cost_models/calibrate_command.hpp"

#include <iostream>

#include "results/cli/command.hpp"

namespace mllmsim {

int calibrate_command(const Arguments& arguments) {
  return run_calibrate(arguments, std::cout, std::cerr);
}

}  // namespace mllmsim
