// How far predictions are from what was measured, over many rows.
//
//   relative error e = predicted / published - 1
//   median, p90, mean: of |e| (sim/base/quantile.hpp)
//   bias: mean of e
//   rank correlation: Spearman's, ties share their mean rank; 1 if the order is predicted exactly
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace mllmsim::validation {

// Nothing below three values, or where either side has no order.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

struct ErrorStatistics {
  std::size_t rows = 0;  // the figures below are 0 if there are none
  double median = 0, p90 = 0, mean = 0, largest = 0, bias = 0;
};
ErrorStatistics error_statistics(std::span<const double> relative_errors);

}  // namespace mllmsim::validation
