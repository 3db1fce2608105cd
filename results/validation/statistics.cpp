#include "results/validation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::validation {
namespace {

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> out(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double mean_rank = static_cast<double>(first + end - 1) / 2;
    for (; first < end; ++first) out[order[first]] = mean_rank;
  }
  return out;
}

}  // namespace

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "ranks of pairs");
  if (a.size() < 3) return std::nullopt;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

ErrorStatistics error_statistics(std::span<const double> relative_errors) {
  ErrorStatistics out;
  out.rows = relative_errors.size();
  if (relative_errors.empty()) return out;
  std::vector<double> sizes;
  for (const double e : relative_errors) sizes.push_back(std::abs(e));
  const double n = static_cast<double>(sizes.size());
  out.mean = sum(sizes) / n;
  out.bias = sum(relative_errors) / n;
  out.median = quantile(sizes, 0.5);
  out.p90 = quantile(sizes, 0.9);
  out.largest = *std::max_element(sizes.begin(), sizes.end());
  return out;
}

}  // namespace mllmsim::validation
