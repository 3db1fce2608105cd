#include "cost_models/calibrate/measure.hpp"

#include <algorithm>
#include <chrono>

namespace mllmsim::calibrate {
namespace {

// Repetitions between two looks at the clock.
int repetitions_per_run(double one, double seconds, const Agree& agree) {
  const double n = seconds / std::max(one, 1e-7);
  return static_cast<int>(agree(std::clamp(n, 1.0, 200.0)));
}

}  // namespace

Clock steady_clock() {
  return [] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  };
}

Summary measure(Prepared& prepared, Mode mode, const Budget& budget, const Clock& now,
                const Agree& agree) {
  prepared.run(2);  // loads code, connects ranks
  const double start = now();
  prepared.run(2);
  const int n = repetitions_per_run((now() - start) / 2, budget.seconds / 16, agree);
  std::vector<double> samples;
  for (;;) {
    const std::vector<double> more = prepared.run(n);
    const double elapsed = now() - start;
    if (mode == Mode::burst || elapsed >= budget.seconds / 2)
      samples.insert(samples.end(), more.begin(), more.end());
    const int count = static_cast<int>(samples.size());
    const bool spent = elapsed >= budget.seconds && count >= kFewest;
    const bool precise = mode == Mode::burst && count >= budget.enough_samples &&
                         summarise(samples).error() < budget.precision;
    if (agree(spent || precise) != 0) return summarise(std::move(samples));
  }
}

}  // namespace mllmsim::calibrate
