// What a strategy wants said of its plan beside the step it gives: which encoder plan it chose,
// what is hidden in bubbles, a bound. Facts follow from the job alone, so the same job gives the
// same ones.
#pragma once

#include <limits>
#include <string>

namespace mllmsim {

struct Fact {
  std::string key;   // snake_case with its unit: "bound_s", "hidden_share_fine"
  std::string text;  // for people: "9.61 s", "dp 48  pp 8  tp 8"
  double number = std::numeric_limits<double>::quiet_NaN();  // for programs; NaN if it is none
};

}  // namespace mllmsim
