// Where a fitted part of a calibration comes from and how well it fits.
#pragma once

#include <cstdint>
#include <string>

#include "cost_models/kernels/kernel_costs.hpp"

namespace mllmsim::costs {

struct Provenance {
  Source source = Source::estimate;
  std::string from;         // in words: data set, licence, or the reasoning of an estimate
  std::int64_t points = 0;  // measurements fitted or held out; 0: not fitted
  double median_error = 0;  // |predicted / measured - 1| on held-out points
  double p90_error = 0;
};

// A factor that was measured, or is assumed.
struct Factor {
  double value = 1;
  Source source = Source::estimate;
  std::string from;
};

// A time rests on the weaker of two sources.
inline Source weaker(Source a, Source b) { return a > b ? a : b; }

}  // namespace mllmsim::costs
