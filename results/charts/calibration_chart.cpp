#include "results/charts/calibration_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"

namespace mllmsim::charts {
namespace {

constexpr std::size_t kMostPoints = 2000;  // of a series: more only hide each other
constexpr double kBand = 0.1;

struct Point {
  double measured, predicted;  // us
  auto operator<=>(const Point&) const = default;
};

// Thinned evenly along the measured times, whatever the order of the files.
plot::Series series(const std::string& part, std::vector<Point> points) {
  std::sort(points.begin(), points.end());
  const std::size_t all = points.size(), drawn = std::min(all, kMostPoints);
  plot::Series s;
  s.name = drawn < all ? fmt::format("{} ({} of {})", part, drawn, all)
                       : fmt::format("{} ({})", part, all);
  s.style = plot::SeriesStyle::points;
  for (std::size_t i = 0; i < drawn; ++i) {
    s.x.push_back(points[i * all / drawn].measured);
    s.y.push_back(points[i * all / drawn].predicted);
  }
  return s;
}

plot::Series times(double factor, double from, double to, std::string name,
                   plot::SeriesStyle style) {
  return {std::move(name), {from, to}, {factor * from, factor * to}, style, {}, {}};
}

std::vector<plot::Series> parts(const costs::Calibration& c, const fit::RawData& raw,
                                const fit::MeasuredNetwork& network) {
  ClusterSpec cluster;
  cluster.gpus_per_node = network.gpus_per_node;
  cluster.nics_per_node = network.nics_per_node;
  cluster.nic_bandwidth = network.nic_bandwidth;
  cluster.nvlink_bandwidth = c.gpu.nvlink_bandwidth;
  std::vector<fit::AttentionMeasurement> attention = raw.attention;
  const auto serving = std::erase_if(attention, [](const auto& a) { return a.serving; });

  std::vector<plot::Series> out;
  const auto add = [&](const char* part, const auto& measurements, auto predict) {
    std::vector<Point> points;
    for (const auto& m : measurements)
      points.push_back({m.time.value * 1e6, predict(m).value * 1e6});
    if (!points.empty()) out.push_back(series(part, std::move(points)));
  };
  add("GEMM", raw.gemm, [&](const auto& m) {
    return costs::gemm_time(c.gemm, c.gpu, m.kernel).time *
           (m.sustained ? 1 : 1 / c.gemm.sustained.value);
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
  if (serving > 0)
    out.push_back({fmt::format("serving attention ({} left out)", serving),
                   {},
                   {},
                   plot::SeriesStyle::points,
                   {},
                   {}});
  return out;
}

}  // namespace

plot::Chart calibration_chart(const costs::Calibration& calibration, const fit::RawData& raw,
                              const fit::MeasuredNetwork& network) {
  plot::Chart chart;
  chart.title = calibration.header.gpu + ": calibrated against measured kernel times";
  chart.x_label = "measured time (us)";
  chart.log_x = true;
  plot::Panel& panel = chart.panel();
  panel.y_label = "predicted time (us)";
  panel.log_y = true;
  const std::vector<plot::Series> measured = parts(calibration, raw, network);
  std::vector<double> all;
  for (const plot::Series& s : measured) {
    all.insert(all.end(), s.x.begin(), s.x.end());
    all.insert(all.end(), s.y.begin(), s.y.end());
  }
  if (all.empty())
    throw UserError("command line", "raw",
                    "no measurement to draw (serving attention is left out)");
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  panel.series = {times(1, *low, *high, "predicted = measured", plot::SeriesStyle::line),
                  times(1 + kBand, *low, *high, "+-10 %", plot::SeriesStyle::guide),
                  times(1 - kBand, *low, *high, "", plot::SeriesStyle::guide)};
  panel.series.insert(panel.series.end(), measured.begin(), measured.end());
  return chart;
}

}  // namespace mllmsim::charts
