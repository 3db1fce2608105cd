// Which kernels of a run were never measured, and how much of its kernel time rests on them.
//
// Each kind of layer is costed once with a recorder between the layers and the calibration; a
// kernel's time counts as often as its layer runs in a step. Transfers between stages and replicas
// are left out.
#pragma once

#include <string>
#include <vector>

#include "cost_models/fit/raw_data.hpp"
#include "scenarios/read/scenario.hpp"

namespace mllmsim::analysis {

struct Gap {
  std::string kernel;  // "gemm 4096 x 6144 x 12288 weight_gradient"
  costs::Source source = costs::Source::estimate;
  double share = 0;  // of the kernel time of a step, all stages
};

struct Gaps {
  std::vector<Gap> gaps;  // largest share first
  fit::RawData shapes;    // the same kernels in the same order within each part: what to measure
};

// Kernels that rest on no measurement of this machine (transferred or estimated), or all of them.
Gaps gaps_of(const scenarios::Scenario& scenario, bool all);

}  // namespace mllmsim::analysis
