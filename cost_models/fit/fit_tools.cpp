#include "cost_models/fit/fit_tools.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "sim/base/hash.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {

std::uint64_t shape_hash(std::initializer_list<std::int64_t> shape) {
  std::uint64_t hash = 0;
  for (const std::int64_t number : shape) {
    hash = split_mix(hash + static_cast<std::uint64_t>(number) + kSplitMixStep);
  }
  return hash;
}

void Errors::add(Seconds predicted, Seconds measured) {
  errors_.push_back(std::abs(predicted / measured - 1));
}

costs::Provenance Errors::provenance(std::size_t points) const {
  costs::Provenance p{costs::Source::interpolated, "", static_cast<std::int64_t>(points), 0, 0};
  if (errors_.empty()) return p;
  p.median_error = quantile(errors_, 0.5);
  p.p90_error = quantile(errors_, 0.9);
  return p;
}

void add_left_out_errors(const std::vector<costs::SizePoint>& points, Errors& errors) {
  std::set<double> sizes;
  for (const costs::SizePoint& p : points) sizes.insert(p.bytes);
  if (sizes.size() < 3) return;
  for (auto size = std::next(sizes.begin()); std::next(size) != sizes.end(); ++size) {
    std::vector<costs::SizePoint> others;
    for (const costs::SizePoint& p : points)
      if (p.bytes != *size) others.push_back(p);
    const Seconds predicted = costs::size_curve(others, points.front().time).at(*size);
    for (const costs::SizePoint& p : points)
      if (p.bytes == *size) errors.add(predicted, p.time);
  }
}

double log_error(Seconds predicted, Seconds measured) { return std::log(predicted / measured); }

double Bounded::operator()(double logarithm) const {
  return std::clamp(std::exp(logarithm), low, high);
}

}  // namespace mllmsim::fit
