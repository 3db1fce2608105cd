// Timeline -> Metrics: simulates a step of a scenario's plan, or all steps of a pass over its data
// set on every core, and measures them.
//
//   GPU-days = GPUs * iteration * samples / samples per step
//   MFU      = model FLOPs / (iteration * GPUs * peak)
//
// Model FLOPs count forward and backward without recomputation, attention over the full square
// (Megatron's convention); hardware FLOPs are what the kernels execute, recomputation included.
//
// A plan that does not fit in memory is still simulated; the result says that it does not fit, and
// why.
#pragma once

#include <filesystem>
#include <string>

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/kernels/scaled_costs.hpp"
#include "results/run/run_result.hpp"
#include "scenarios/read/scenario.hpp"

namespace mllmsim::results {

struct RunOptions {
  scenarios::InputFiles* files = nullptr;  // calibrations, shared by many runs
  bool timeline = true;                    // spans and memory rows, most of what a run leaves
  bool critical_path = false;
  costs::CostFactors factors{};  // some kernels take longer than calibrated
};

RunResult run_scenario(const scenarios::Scenario& scenario, const RunOptions& options = {});

// What a scenario says of a run, before anything is simulated: name, model, sizes, hashes.
RunResult described(const scenarios::Scenario& scenario);

}  // namespace mllmsim::results
