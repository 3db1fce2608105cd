// Median and spread of repeated timings. Medians because timings have outliers on one side only.
#pragma once

#include <vector>

namespace mllmsim::calibrate {

struct Summary {
  double median = 0;
  double spread = 0;  // interquartile range / median
  int samples = 0;

  // Relative standard error of the median, for normally distributed samples:
  // 1.2533 sigma / sqrt(n) with sigma = interquartile range / 1.349.
  double error() const;
};

// All zero without samples: a node outside the measured group.
Summary summarise(std::vector<double> samples);

}  // namespace mllmsim::calibrate
