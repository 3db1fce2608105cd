// Time as a function of message size, through measured points.
//
// Between points: monotone cubic in (log bytes, log time) (Fritsch and Carlson 1980, with the
// harmonic-mean slopes of Fritsch and Butland 1984). Below the first: linear from `latency` at
// nothing. Above the last: at the last point's incremental bandwidth, or its mean bandwidth if that
// is all there is or the last times are one. Times never fall with size.
#pragma once

#include <vector>

#include "cost_models/kernels/provenance.hpp"

namespace mllmsim::costs {

struct SizePoint {
  double bytes = 0;
  Seconds time{};
};

struct SizeCurve {
  Seconds latency{};
  std::vector<SizePoint> points;  // by rising bytes, times not falling; at least one

  Seconds at(double bytes) const;
  // How well `bytes` is covered: measured at a point, interpolated between, estimate outside.
  Source coverage(double bytes) const;
  BytesPerSecond best_bandwidth() const;  // largest bytes / time
};

// Points of equal size become their geometric mean; times that fall with size become their mean.
// `latency` is used unless sizes small enough to show it were measured.
SizeCurve size_curve(std::vector<SizePoint> points, Seconds latency);

}  // namespace mllmsim::costs
