// Scenario -> RunResult: reads the calibration, simulates the job (strategies/run/simulate.hpp),
// and adds what the scenario says: names, sizes, text, hashes.
#pragma once

#include "results/run/run_result.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "strategies/run/simulate.hpp"

namespace mllmsim::results {

RunResult run_scenario(const scenarios::Scenario& scenario, const RunOptions& options = {});

// With calibrations shared by many runs.
RunResult run_scenario(const scenarios::Scenario& scenario, scenarios::InputFiles& files,
                       const RunOptions& options = {});

// With a calibration that no file holds.
RunResult run_scenario(const scenarios::Scenario& scenario, const costs::Calibration& calibration,
                       const RunOptions& options = {});

// What a scenario says of a run, before anything is simulated.
RunResult described(const scenarios::Scenario& scenario);

}  // namespace mllmsim::results
