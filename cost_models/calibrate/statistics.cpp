#include "cost_models/calibrate/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace mllmsim::calibrate {

double Summary::error() const { return 1.2533 / 1.349 * spread / std::sqrt(double(samples)); }

double quantile(std::span<const double> sorted, double q) {
  check(!sorted.empty(), "quantile of no samples");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

Summary summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const double median = quantile(samples, 0.5);
  const double range = quantile(samples, 0.75) - quantile(samples, 0.25);
  return {median, median > 0 ? range / median : 0, static_cast<int>(samples.size())};
}

}  // namespace mllmsim::calibrate
