// The calibrations of many runs, each read once and shared by all threads.
#pragma once

#include <map>
#include <string>

#include "cost_models/calibrated_costs.hpp"
#include "cost_models/scaled_costs.hpp"
#include "results/run_result.hpp"
#include "scenarios/scenario.hpp"

namespace mllmsim {

class CalibrationCache {
 public:
  // Reads the calibrations of all scenarios; `points` is any range of things with a `scenario`.
  explicit CalibrationCache(const auto& points) {
    for (const auto& p : points) add(p.scenario);
  }

  // The scenario's result; with `factors`, some kernels take longer. Its timeline is left out: many
  // runs at once would not fit.
  RunResult run(const Scenario& scenario, const CostFactors& factors = {}) const;

 private:
  void add(const Scenario& scenario);

  struct Entry {
    Calibration calibration;
    std::string hash;
  };
  std::map<std::string, Entry> entries_;  // by path
};

}  // namespace mllmsim
