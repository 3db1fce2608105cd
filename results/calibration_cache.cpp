#include "results/calibration_cache.hpp"

#include "results/measure.hpp"

namespace mllmsim {

void CalibrationCache::add(const Scenario& scenario) {
  const std::string path = scenario.calibration.string();
  if (path.empty() || entries_.contains(path)) return;
  entries_.emplace(path, Entry{read_calibration(path), calibration_hash(path)});
}

RunResult CalibrationCache::run(const Scenario& scenario, const CostFactors& factors) const {
  if (scenario.job.given_times) return run_scenario(scenario);
  const Entry& entry = entries_.at(scenario.calibration.string());
  const auto kernels = make_kernel_costs(entry.calibration, scenario.job.cluster);
  RunResult result = run_scenario(scenario, ScaledCosts(*kernels, factors), entry.hash);
  result.spans.clear();
  result.memory.clear();
  return result;
}

}  // namespace mllmsim
