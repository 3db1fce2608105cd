// A calibration as `calibrate show` prints it: first a table,
//
//   part | source in a word | measurements | median and p90 error on held-out ones, or the factor
//
// then where it all comes from in full: every text once, under the parts that rest on it.
#pragma once

#include <ostream>

#include "cost_models/calibration/calibration.hpp"

namespace mllmsim::fit {

void show(const costs::Calibration& calibration, std::ostream& out);

}  // namespace mllmsim::fit
