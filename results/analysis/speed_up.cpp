#include "results/analysis/speed_up.hpp"

namespace mllmsim::analysis {

Cost cost_of(const results::RunResult& run) {
  return {run.work, run.fits ? run.gpu_days : 0, run.samples};
}

std::optional<double> speed_up(const Cost& run, const Cost& baseline) {
  const bool comparable = run.work == baseline.work && run.gpu_days > 0 && baseline.gpu_days > 0 &&
                          run.samples > 0 && baseline.samples > 0;
  if (!comparable) return std::nullopt;
  return (baseline.gpu_days / baseline.samples) / (run.gpu_days / run.samples);
}

}  // namespace mllmsim::analysis
