// What do constants that were chosen by looking at published runs contribute? Every family is
// predicted again with all of them neutral, and with each alone: a family whose error hardly grows
// is predicted, one whose error doubles is calibrated.
//
// A knob is such a constant. Neutral is what one would write without ever having seen a run. Runs
// that a knob does not touch are not simulated again.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/calibration/calibration.hpp"
#include "results/validation/validation.hpp"

namespace mllmsim::validation {

struct Knob {
  std::string name;         // the key, as a scenario or a calibration has it
  std::string neutral;      // its neutral value, in words
  std::string chosen_with;  // the rows or the reasoning it was chosen with
  // Makes it neutral; false if it was.
  std::function<bool(Job&, costs::Calibration&)> neutralise;
  bool by_runs = true;  // chosen by looking at runs; otherwise only shown alone
};
const std::vector<Knob>& fitted_knobs();

// Median |error| of a source's figures, and of its speed-ups if it has any.
struct AblationCell {
  double median = 0;
  std::optional<double> speedup;
};
struct AblationRow {
  std::string source;  // "all": every source
  // With all evidence, with all knobs that runs chose neutral, with each knob neutral.
  std::vector<AblationCell> cells;
};

// `validation` is what validate() gave for the same families.
std::vector<AblationRow> ablate(std::span<const scenarios::PublishedFamily> families,
                                const Validation& validation, Progress* progress = nullptr);

}  // namespace mllmsim::validation
