#include "cost_models/fit/fit_tools.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace mllmsim::fit {

std::uint64_t shape_hash(std::initializer_list<std::int64_t> shape) {
  std::uint64_t hash = 0;
  for (const std::int64_t number : shape) {
    std::uint64_t z = hash + static_cast<std::uint64_t>(number) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    hash = z ^ (z >> 31);
  }
  return hash;
}

void Errors::add(Seconds predicted, Seconds measured) {
  errors_.push_back(std::abs(predicted / measured - 1));
}

costs::Provenance Errors::provenance(std::size_t points) {
  std::sort(errors_.begin(), errors_.end());
  costs::Provenance p{costs::Source::interpolated, "", static_cast<std::int64_t>(points), 0, 0};
  if (errors_.empty()) return p;
  p.median_error = errors_[errors_.size() / 2];
  p.p90_error = errors_[errors_.size() * 9 / 10];
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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double log_error(Seconds predicted, Seconds measured) { return std::log(predicted / measured); }

double Bounded::operator()(double logarithm) const {
  return std::clamp(std::exp(logarithm), low, high);
}

}  // namespace mllmsim::fit
