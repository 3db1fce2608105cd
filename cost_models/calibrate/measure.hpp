// How often a task is repeated.
//
//   burst      a few repetitions to warm up, then repetitions until the median is known to
//              `precision` or the time budget is spent, but never fewer than kFewest
//   sustained  back to back for the whole budget, of which the first half lets clock and
//              temperature settle and the second half counts
#pragma once

#include <functional>

#include "cost_models/calibrate/backend.hpp"
#include "cost_models/calibrate/statistics.hpp"

namespace mllmsim::calibrate {

inline constexpr int kFewest = 3;

struct Budget {
  double seconds = 0.5;
  double precision = 0.002;  // relative standard error of the median
  int enough_samples = 10;   // before precision may end the measurement
};

using Clock = std::function<double()>;  // seconds since some start
Clock steady_clock();

// agree: Backend::agree for a task that spans nodes. Others must not wait for other nodes.
using Agree = std::function<double(double)>;
inline double alone(double value) { return value; }

Summary measure(Prepared& prepared, Mode mode, const Budget& budget, const Clock& now,
                const Agree& agree = alone);

}  // namespace mllmsim::calibrate
