// Quantiles by linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996; what
// NumPy and R do unless told otherwise): with n values sorted as x[0] <= ... <= x[n-1],
//
//   quantile(q) = x[i] + (h - i) (x[i+1] - x[i]),   h = q (n - 1),  i = floor(h)
//
// so the median of an even number of values is the mean of the two in the middle.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sim/base/errors.hpp"

namespace mllmsim {

// At least one value, ascending; 0 <= q <= 1.
inline double quantile_of_sorted(std::span<const double> sorted, double q) {
  check(!sorted.empty() && q >= 0 && q <= 1, "a quantile of no values, or outside 0..1");
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// The same of values in any order.
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, q);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace mllmsim
