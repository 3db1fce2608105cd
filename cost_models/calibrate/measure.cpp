#include "cost_models/calibrate/measure.hpp"

#include <algorithm>
#include <chrono>

namespace mllmsim::calibrate {
namespace {

// Repetitions between two looks at the clock.
int repetitions_per_run(double one, double seconds, Backend& backend) {
  const double n = seconds / std::max(one, 1e-7);
  return static_cast<int>(backend.agree(std::clamp(n, 1.0, 200.0)));
}

Summary measure_burst(Prepared& prepared, const Budget& budget, Backend& backend,
                      const Clock& now) {
  const double start = now();
  prepared.run(2);
  const int n = repetitions_per_run((now() - start) / 2, budget.seconds / 16, backend);
  std::vector<double> samples;
  for (;;) {
    const std::vector<double> more = prepared.run(n);
    samples.insert(samples.end(), more.begin(), more.end());
    const int count = static_cast<int>(samples.size());
    const bool spent = now() - start >= budget.seconds && count >= kFewest;
    const bool precise =
        count >= budget.enough_samples && summarise(samples).error() < budget.precision;
    if (backend.agree(spent || precise) != 0) return summarise(std::move(samples));
  }
}

Summary measure_sustained(Prepared& prepared, const Budget& budget, Backend& backend,
                          const Clock& now) {
  const double start = now();
  prepared.run(2);
  const int n = repetitions_per_run((now() - start) / 2, budget.seconds / 16, backend);
  std::vector<double> samples;
  for (;;) {
    const std::vector<double> more = prepared.run(n);
    const double elapsed = now() - start;
    if (elapsed >= budget.seconds / 2) samples.insert(samples.end(), more.begin(), more.end());
    const bool spent = elapsed >= budget.seconds && static_cast<int>(samples.size()) >= kFewest;
    if (backend.agree(spent) != 0) return summarise(std::move(samples));
  }
}

}  // namespace

Clock steady_clock() {
  return [] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  };
}

Summary measure(Prepared& prepared, Mode mode, const Budget& budget, Backend& backend,
                const Clock& now) {
  return mode == Mode::burst ? measure_burst(prepared, budget, backend, now)
                             : measure_sustained(prepared, budget, backend, now);
}

}  // namespace mllmsim::calibrate
