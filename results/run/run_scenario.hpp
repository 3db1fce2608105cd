// Scenario -> RunResult: reads the calibration, simulates the job (strategies/run/simulate.hpp),
// and adds what the scenario says: names, sizes, text, hashes.
#pragma once

#include <map>

#include "results/run/run_result.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "strategies/run/simulate.hpp"

namespace mllmsim::results {

RunResult run_scenario(const scenarios::Scenario& scenario, const RunOptions& options = {});

// With calibrations shared by many runs.
RunResult run_scenario(const scenarios::Scenario& scenario, scenarios::InputFiles& files,
                       const RunOptions& options = {});

// Of one thread that runs many scenarios: a Simulator per calibration.
class Simulators {
 public:
  Simulator& of(const costs::Calibration& calibration) {  // which must outlive it
    return known_.try_emplace(&calibration, calibration).first->second;
  }

 private:
  std::map<const costs::Calibration*, Simulator> known_;
};
RunResult run_scenario(const scenarios::Scenario& scenario, scenarios::InputFiles& files,
                       Simulators& simulators, const RunOptions& options = {});

// With a calibration that no file holds.
RunResult run_scenario(const scenarios::Scenario& scenario, const costs::Calibration& calibration,
                       const RunOptions& options = {});

// What a scenario says of a run, before anything is simulated.
RunResult described(const scenarios::Scenario& scenario);

}  // namespace mllmsim::results
