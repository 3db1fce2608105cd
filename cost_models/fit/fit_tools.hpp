// What the fits share: which points are held out, how errors are summed up.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cost_models/kernels/size_curve.hpp"

namespace mllmsim::fit {

// SplitMix64 over the numbers of a shape: the same point is held out whatever the order of lines.
std::uint64_t shape_hash(std::initializer_list<std::int64_t> shape);
inline bool held_out(std::uint64_t hash) { return hash % 5 == 0; }

// Errors of predictions on held-out points.
class Errors {
 public:
  void add(Seconds predicted, Seconds measured);
  // Source::interpolated with these errors; `points` counts fitted ones too.
  costs::Provenance provenance(std::size_t points) const;
  bool empty() const { return errors_.empty(); }

 private:
  std::vector<double> errors_;
};

// A curve passes through all its points; its errors are those at each inner size of a curve
// without that size.
void add_left_out_errors(const std::vector<costs::SizePoint>& points, Errors& errors);

// log(predicted / measured).
double log_error(Seconds predicted, Seconds measured);

// A free parameter of a fit, between two positive bounds; fits work on its logarithm.
struct Bounded {
  double low, high;
  double operator()(double logarithm) const;  // exp, clamped
};

}  // namespace mllmsim::fit
