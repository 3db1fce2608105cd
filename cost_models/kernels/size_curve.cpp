#include "cost_models/kernels/size_curve.hpp"

#include <algorithm>
#include <cmath>

namespace mllmsim::costs {
namespace {

constexpr double kShowsLatency = 16 << 10;  // bytes that take no time of their own

// Slope of log time over log bytes between points i and i + 1.
double chord(const std::vector<SizePoint>& p, std::size_t i) {
  return std::log(p[i + 1].time / p[i].time) / std::log(p[i + 1].bytes / p[i].bytes);
}

// Slope of the curve at point i: the weighted harmonic mean of the chords beside it.
double slope(const std::vector<SizePoint>& p, std::size_t i) {
  if (i == 0) return chord(p, 0);
  if (i + 1 == p.size()) return chord(p, i - 1);
  const double before = chord(p, i - 1), after = chord(p, i);
  if (before <= 0 || after <= 0) return 0;
  const double left = std::log(p[i].bytes / p[i - 1].bytes);
  const double right = std::log(p[i + 1].bytes / p[i].bytes);
  const double w1 = 2 * right + left, w2 = right + 2 * left;
  return (w1 + w2) / (w1 / before + w2 / after);
}

// Sizes with one time between them.
struct Level {
  double log_time = 0;    // summed over its measurements
  std::size_t count = 0;  // of measurements
  std::size_t sizes = 1;

  double mean() const { return log_time / static_cast<double>(count); }
};

// More bytes take no less time: measurements that say otherwise are scatter and become their mean
// (isotonic regression: pool adjacent violators).
void add_level(std::vector<Level>& levels, Level level) {
  while (!levels.empty() && levels.back().mean() > level.mean()) {
    level.log_time += levels.back().log_time;
    level.count += levels.back().count;
    level.sizes += levels.back().sizes;
    levels.pop_back();
  }
  levels.push_back(level);
}

}  // namespace

Seconds SizeCurve::at(double bytes) const {
  const SizePoint& first = points.front();
  const SizePoint& last = points.back();
  if (bytes <= first.bytes) return latency + (first.time - latency) * (bytes / first.bytes);
  if (bytes >= last.bytes) {
    const SizePoint& before = points[points.size() > 1 ? points.size() - 2 : 0];
    if (before.time >= last.time) return last.time * (bytes / last.bytes);
    const double seconds_a_byte = (last.time - before.time).value / (last.bytes - before.bytes);
    return last.time + Seconds{seconds_a_byte * (bytes - last.bytes)};
  }
  const auto above = std::upper_bound(points.begin(), points.end(), bytes,
                                      [](double b, const SizePoint& p) { return b < p.bytes; });
  const auto i = static_cast<std::size_t>(above - points.begin()) - 1;
  const double width = std::log(points[i + 1].bytes / points[i].bytes);
  const double t = std::log(bytes / points[i].bytes) / width;
  const double rise = std::log(points[i + 1].time / points[i].time);
  const double a = slope(points, i) * width, b = slope(points, i + 1) * width;
  const double cubic = t * (a + t * ((3 * rise - 2 * a - b) + t * (a + b - 2 * rise)));
  return points[i].time * std::exp(cubic);
}

Source SizeCurve::coverage(double bytes) const {
  if (bytes < points.front().bytes || bytes > points.back().bytes) return Source::estimate;
  const bool exact = std::any_of(points.begin(), points.end(),
                                 [&](const SizePoint& p) { return p.bytes == bytes; });
  return exact ? Source::measured : Source::interpolated;
}

BytesPerSecond SizeCurve::best_bandwidth() const {
  double best = 0;
  for (const SizePoint& p : points) best = std::max(best, p.bytes / p.time.value);
  return {best};
}

SizeCurve size_curve(std::vector<SizePoint> points, Seconds latency) {
  std::stable_sort(points.begin(), points.end(),
                   [](const SizePoint& a, const SizePoint& b) { return a.bytes < b.bytes; });
  SizeCurve curve;
  std::vector<Level> levels;
  for (std::size_t i = 0; i < points.size();) {
    Level level;
    const double bytes = points[i].bytes;
    for (; i < points.size() && points[i].bytes == bytes; ++i, ++level.count)
      level.log_time += std::log(points[i].time.value);
    curve.points.push_back({bytes, {}});
    add_level(levels, level);
  }
  std::size_t at = 0;
  for (const Level& level : levels)
    for (std::size_t n = 0; n < level.sizes; ++n)
      curve.points[at++].time = {std::exp(level.mean())};
  const SizePoint& first = curve.points.front();
  curve.latency = first.bytes <= kShowsLatency ? first.time : std::min(latency, first.time);
  return curve;
}

}  // namespace mllmsim::costs
