#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/charts/cells.hpp"
#include "results/charts/table_charts.hpp"

namespace mllmsim::charts {
namespace {

constexpr double kBand = 0.1;

// The band around the diagonal, cut off where the axes end; in steps, as it is bent there.
plot::Series band(double low, double high) {
  constexpr int kSteps = 100;
  plot::Series s;
  s.name = "within 10 %";
  s.style = plot::SeriesStyle::band;
  s.colour = 0x009e73;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = low * std::pow(high / low, static_cast<double>(i) / kSteps);
    s.x.push_back(std::clamp(x, low, high));
    s.y.push_back(std::clamp((1 + kBand) * x, low, high));
    s.y_low.push_back(std::clamp((1 - kBand) * x, low, high));
  }
  return s;
}

constexpr double kMostError = 60;  // larger ones are drawn at the edge

// "stages.2.blocks" and "bubble_share_tp" are drawn as their kind.
std::string kind_of(const std::string& metric) {
  if (metric.starts_with("stages.")) return metric.substr(metric.rfind('.') + 1);
  return metric.starts_with("bubble_share") ? "bubble_share" : metric;
}

}  // namespace

plot::Chart validation_chart(const tables::Table& rows) {
  const tables::Column &metric = column_of(rows, "metric", "PATH"),
                       &predicted = column_of(rows, "predicted", "PATH"),
                       &published = column_of(rows, "published", "PATH");
  std::vector<plot::Series> figures, errors;
  double low = INFINITY, high = 0, worst = 0.2;
  std::size_t left_out = 0, within = 0, drawn = 0;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const double x = number(published, i).value_or(0), y = number(predicted, i).value_or(0);
    const std::string name = kind_of(word(metric, i));
    if (name == "fits") continue;  // yes or no
    if (!(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) {
      ++left_out;
      continue;
    }
    auto at = std::find_if(figures.begin(), figures.end(),
                           [&](const plot::Series& s) { return s.name == name; });
    if (at == figures.end()) {
      figures.push_back({name, {}, {}, plot::SeriesStyle::points, {}, {}});
      errors.push_back(figures.back());
      at = figures.end() - 1;
    }
    plot::Series& error = errors[static_cast<std::size_t>(at - figures.begin())];
    at->x.push_back(x), at->y.push_back(y);
    error.x.push_back(x), error.y.push_back(std::clamp(100 * (y / x - 1), -kMostError, kMostError));
    low = std::min({low, x, y}), high = std::max({high, x, y});
    worst = std::max(worst, std::min(std::abs(y / x - 1), kMostError / 100));
    within += std::abs(y / x - 1) <= kBand;
    ++drawn;
  }
  if (drawn == 0) throw UserError("command line", "PATH", "no figures to draw in it");
  low *= 0.8, high *= 1.25;

  plot::Chart chart;
  chart.title =
      fmt::format("{} of {} predictions within 10 % of what was published", within, drawn);
  if (left_out > 0)
    chart.title += fmt::format("\n{} without a positive figure are left out", left_out);
  chart.x_label = "published (in the unit of each metric)";
  chart.log_x = true;
  chart.x_range = plot::Range{low, high};
  chart.height_px = 1000;
  chart.panels.assign(2, {});
  plot::Panel &top = chart.panels[0], &bottom = chart.panels[1];
  top.y_label = "predicted";
  top.log_y = true;
  top.y_range = plot::Range{low, high};
  top.height = 2;
  top.series = {
      band(low, high),
      {"predicted = published", {low, high}, {low, high}, plot::SeriesStyle::guide, {}, {}}};
  bottom.y_label = worst < kMostError / 100 ? "error (%)" : "error (%), 60 or more";
  bottom.y_range = plot::Range{-108 * worst, 108 * worst};
  bottom.series = {
      {"within 10 %",
       {low, high},
       {100 * kBand, 100 * kBand},
       plot::SeriesStyle::band,
       {-100 * kBand, -100 * kBand},
       plot::Colour{0x009e73}},
      {"predicted = published", {low, high}, {0, 0}, plot::SeriesStyle::guide, {}, {}}};
  top.series.insert(top.series.end(), figures.begin(), figures.end());
  bottom.series.insert(bottom.series.end(), errors.begin(), errors.end());
  return chart;
}

}  // namespace mllmsim::charts
