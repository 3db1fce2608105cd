#include "cost_models/calibrate/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/quantile.hpp"

namespace mllmsim::calibrate {

double Summary::error() const { return 1.2533 / 1.349 * spread / std::sqrt(double(samples)); }

Summary summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const double median = quantile_of_sorted(samples, 0.5);
  const double range = quantile_of_sorted(samples, 0.75) - quantile_of_sorted(samples, 0.25);
  return {median, median > 0 ? range / median : 0, static_cast<int>(samples.size())};
}

}  // namespace mllmsim::calibrate
