// What a person reads after a sweep: one line per point if they are few, else the best by GPU-days;
// and how many others do not fit or cannot be planned, and why.
#pragma once

#include <optional>
#include <string>

#include "results/sweep/run_sweep.hpp"

namespace mllmsim::sweep {

// `price` of a GPU-hour, if it shall say what points cost.
std::string sweep_summary(const scenarios::Sweep& sweep, const SweepResult& result,
                          std::optional<double> price = {});

// A scenario's key as a heading: "parallelism.pipeline_model_parallel_size" is "pp".
std::string short_key(const std::string& key);

}  // namespace mllmsim::sweep
