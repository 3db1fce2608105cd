// One number of a run, by the name its column has in the result tables.
//
//   iteration_s                  a column of runs; true and false are 1 and 0
//   stages.2.forward_s           of stage 2; stages.max.X, .min.X and .sum.X over all stages
//   stages.2.free_memory_bytes   what the stage leaves of the GPU's memory
//   stages.2.state_bytes         weights, gradients and optimizer together
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "results/run/run_result.hpp"

namespace mllmsim::validation {

// Nothing if the run has no such stage.
std::optional<double> run_metric(const results::RunResult& run, std::string_view name);

// What is wrong with a metric's name, or "" if runs can have it.
std::string metric_problem(std::string_view name);

}  // namespace mllmsim::validation
