// Which kernels of a run were never measured, and how much of its kernel time rests on them.
//
// Each kind of layer is costed once with a recorder between the layers and the calibration; a
// kernel's time counts as often as its layer runs in a step. Of a pass over a data set, whose
// micro-batches all differ, the typical one is taken. Transfers between stages and replicas are
// left out.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cost_models/fit/raw_data.hpp"
#include "results/run/run_result.hpp"
#include "scenarios/read/scenario.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::analysis {

using Gap = results::GapRow;

struct Gaps {
  std::vector<Gap> gaps;  // largest share first
  fit::RawData shapes;    // the same kernels in the same order within each part: what to measure
};

struct GapsAsked {
  bool all = false;                                            // kernels that were measured, too
  std::size_t most = std::numeric_limits<std::size_t>::max();  // only the largest
};

// Kernels that rest on no measurement of this machine (transferred or estimated). Of several runs:
// their shares' means.
Gaps gaps_of(const std::vector<scenarios::Scenario>& scenarios, const GapsAsked& asked = {});
// Of one run that has been planned.
Gaps gaps_of(const scenarios::Scenario& scenario, const Job& job, const Plan& plan,
             const GapsAsked& asked = {});

// How many measurements are recommended.
inline constexpr std::size_t kMeasuredFirst = 5;
// How to make them: for runs and overrides as `calibrate gaps` takes them.
std::string measure_command(const std::vector<std::string>& words);

}  // namespace mllmsim::analysis
