// How much less one run costs than another, the one meaning of "speed-up" everywhere:
//
//   speed-up = GPU-days of the baseline / GPU-days of the run, both for the same samples
//
// so twice the GPUs at twice the pace is 1.00x; wall-clock days stand beside it. Only runs of the
// same work (model, data, samples; scenarios/read/scenario.hpp) have one, and only if both fit.
#pragma once

#include <optional>
#include <string>

#include "results/run/run_result.hpp"

namespace mllmsim::analysis {

struct Cost {
  std::string work;
  double gpu_days = 0;  // for `samples`; 0: it does not fit
  double samples = 0;
};

Cost cost_of(const results::RunResult& run);

std::optional<double> speed_up(const Cost& run, const Cost& baseline);

}  // namespace mllmsim::analysis
