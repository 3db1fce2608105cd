// Timeline -> Metrics: simulates a step of a scenario's plan, or all steps of a pass over its data
// set on every core, and measures them.
//
//   GPU-days = GPUs * iteration * samples / samples a step          MFU = model FLOPs / (iteration
//   * GPUs * peak) model FLOPs count forward and backward without recomputation, attention over the
//   full square (Megatron's convention); hardware FLOPs are what the kernels execute, recomputation
//   included.
//
// A plan that does not fit in memory is still simulated; the result says that it does not fit, and
// why.
#pragma once

#include <filesystem>
#include <string>

#include "cost_models/kernel_costs.hpp"
#include "results/run_result.hpp"
#include "scenarios/scenario.hpp"

namespace mllmsim {

RunResult run_scenario(const Scenario& scenario);

// With kernel costs at hand instead of the scenario's calibration file.
RunResult run_scenario(const Scenario& scenario, const KernelCosts& kernels,
                       const std::string& calibration_hash);
std::string calibration_hash(const std::filesystem::path& file);

}  // namespace mllmsim
