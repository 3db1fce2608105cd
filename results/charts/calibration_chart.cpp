#include "results/charts/calibration_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "results/charts/ticks.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::charts {
namespace {

constexpr std::size_t kMostPoints = 2000;  // of a part: more only hide each other
constexpr std::size_t kMostPartColumns = 2;
constexpr double kBand = 0.1, kLeastRange = 1.5, kMostRange = 10;

struct Point {
  double measured, ratio;  // us; predicted / measured
  auto operator<=>(const Point&) const = default;
};

struct Part {
  std::string name;
  std::vector<Point> points;
};

double median_error(const std::vector<Point>& points) {
  std::vector<double> errors;
  for (const Point& p : points) errors.push_back(std::abs(p.ratio - 1));
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

// Thinned evenly along the measured times, whatever the order of the files. Ratios beyond the axis
// are drawn at its end.
plot::Panel panel_of(Part part, double range) {
  std::sort(part.points.begin(), part.points.end());
  const std::size_t all = part.points.size(), drawn = std::min(all, kMostPoints);
  plot::Series s;
  s.name = "a measured kernel";
  s.style = plot::SeriesStyle::points;
  s.colour = 0x0072b2;
  for (std::size_t i = 0; i < drawn; ++i) {
    const Point& p = part.points[i * all / drawn];
    s.x.push_back(p.measured);
    s.y.push_back(std::clamp(p.ratio, 1 / range, range));
  }
  plot::Panel panel;
  panel.title =
      fmt::format("{}, {}median error {:.1f} %", part.name,
                  drawn < all ? fmt::format("{} of {}, ", drawn, all) : fmt::format("{}, ", all),
                  100 * median_error(part.points));
  panel.y_label = "predicted / measured";
  panel.log_y = true;
  panel.y_range = plot::Range{1 / range, range};
  panel.y_ticks = {};
  for (const double at : {0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0})
    if (at >= 1 / range && at <= range) panel.y_ticks.push_back({at, tick_text(at)});
  const plot::Range x{0.8 * part.points.front().measured, 1.25 * part.points.back().measured};
  panel.own_x = plot::XAxis{"measured time (us)", true, x, log_ticks(x)};
  const std::vector<double> across{x.low, x.high};
  panel.series = {{"within 10 %",
                   across,
                   {1 + kBand, 1 + kBand},
                   plot::SeriesStyle::band,
                   {1 - kBand, 1 - kBand},
                   plot::Colour{0x009e73}},
                  {"predicted = measured", across, {1, 1}, plot::SeriesStyle::guide, {}, {}},
                  std::move(s)};
  return panel;
}

std::vector<Part> parts(const costs::Calibration& c, const fit::RawData& raw,
                        const std::vector<fit::AttentionMeasurement>& attention,
                        const fit::MeasuredNetwork& network) {
  ClusterSpec cluster;
  cluster.gpus_per_node = network.gpus_per_node;
  cluster.nics_per_node = network.nics_per_node;
  cluster.nic_bandwidth = network.nic_bandwidth;
  cluster.nvlink_bandwidth = c.gpu.nvlink_bandwidth;
  std::vector<Part> out;
  const auto add = [&](const char* name, const auto& measurements, auto predict) {
    Part part{name, {}};
    for (const auto& m : measurements)
      part.points.push_back({m.time.value * 1e6, predict(m) / m.time});
    if (!part.points.empty()) out.push_back(std::move(part));
  };
  add("GEMM", raw.gemm, [&](const auto& m) {
    return m.sustained ? costs::gemm_time(c.gemm, c.gpu, m.kernel).time
                       : costs::burst_time(c.gemm, c.gpu, m.kernel);
  });
  add("attention", attention,
      [&](const auto& m) { return costs::attention_time(c.attention, c.gpu, m.kernel).time; });
  add("memory bound", raw.memory_bound, [&](const auto& m) {
    return costs::memory_bound_time(c.memory_bound, c.gpu, m.kernel).time;
  });
  add("collectives", raw.collectives,
      [&](const auto& m) { return costs::collective_time(c.collectives, cluster, m.kernel).time; });
  add("point to point", raw.p2p,
      [&](const auto& m) { return costs::p2p_time(c.p2p, cluster, m.kernel).time; });
  return out;
}

}  // namespace

plot::Chart calibration_chart(const costs::Calibration& calibration, const fit::RawData& raw,
                              const fit::MeasuredNetwork& network) {
  std::vector<fit::AttentionMeasurement> attention = raw.attention;
  const auto serving = std::erase_if(attention, [](const auto& a) { return a.serving; });
  std::vector<Part> all = parts(calibration, raw, attention, network);
  if (all.empty())
    throw UserError("command line", "raw",
                    "no measurement to draw (serving attention is left out)");
  double range = kLeastRange;
  for (const Part& part : all)
    for (const Point& p : part.points) range = std::max({range, 1.05 * p.ratio, 1.05 / p.ratio});
  range = std::min(range, kMostRange);
  plot::Chart chart;
  chart.title = calibration.header.gpu + ": calibrated against measured kernel times";
  if (serving > 0)
    chart.title += fmt::format("\n{} measurements of serving attention are left out", serving);
  chart.panels.clear();
  chart.columns = std::min(kMostPartColumns, all.size());
  for (Part& part : all) chart.panels.push_back(panel_of(std::move(part), range));
  const std::size_t rows = (chart.panels.size() + chart.columns - 1) / chart.columns;
  chart.height_px = static_cast<int>(rows == 1 ? 600 : 120 + 380 * rows);
  return chart;
}

}  // namespace mllmsim::charts
