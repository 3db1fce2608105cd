#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/charts/cells.hpp"
#include "results/charts/table_charts.hpp"
#include "results/charts/ticks.hpp"
#include "results/text/words.hpp"

namespace mllmsim::charts {
namespace {

constexpr double kGoodError = 0.1;
constexpr std::size_t kMostKindColumns = 4;

// "stages.2.blocks" and "bubble_share_tp" are drawn as their kind.
std::string kind_of(const std::string& metric) {
  if (metric.starts_with("stages.")) return metric.substr(metric.rfind('.') + 1);
  return metric.starts_with("bubble_share") ? "bubble_share" : metric;
}

struct Figures {
  std::string kind;
  std::vector<double> published, predicted;

  double error(std::size_t i) const { return std::abs(predicted[i] / published[i] - 1); }
  std::size_t within() const {
    std::size_t out = 0;
    for (std::size_t i = 0; i < published.size(); ++i) out += error(i) <= kGoodError;
    return out;
  }
  double median_error() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < published.size(); ++i) all.push_back(error(i));
    std::sort(all.begin(), all.end());
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  }
};

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
    s.y.push_back(std::clamp((1 + kGoodError) * x, low, high));
    s.y_low.push_back(std::clamp((1 - kGoodError) * x, low, high));
  }
  return s;
}

// Each kind of figure in its unit, on axes of its own.
plot::Panel panel_of(const Figures& f) {
  const std::string words = results::words_of_column(f.kind);
  const auto [least, most] = std::ranges::minmax(f.published);
  const auto [least_y, most_y] = std::ranges::minmax(f.predicted);
  const double low = 0.8 * std::min(least, least_y), high = 1.25 * std::max(most, most_y);
  plot::Panel panel;
  panel.title = fmt::format("{}\n{}, median error {:.1f} %", words, f.published.size(),
                            100 * f.median_error());
  panel.own_x = plot::XAxis{"published", true, {low, high}, log_ticks({low, high})};
  panel.y_ticks = panel.own_x->ticks;
  panel.y_label = "predicted";
  panel.log_y = true;
  panel.y_range = plot::Range{low, high};
  panel.series = {
      band(low, high),
      {"predicted = published", {low, high}, {low, high}, plot::SeriesStyle::guide, {}, {}},
      {"a published figure",
       f.published,
       f.predicted,
       plot::SeriesStyle::points,
       {},
       plot::Colour{0x0072b2}}};
  return panel;
}

}  // namespace

plot::Chart validation_chart(const tables::Table& rows) {
  const tables::Column &metric = column_of(rows, "metric", "PATH"),
                       &predicted = column_of(rows, "predicted", "PATH"),
                       &published = column_of(rows, "published", "PATH");
  std::vector<Figures> kinds;
  std::size_t left_out = 0, within = 0, drawn = 0;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const double x = number(published, i).value_or(0), y = number(predicted, i).value_or(0);
    const std::string kind = kind_of(word(metric, i));
    if (kind == "fits") continue;  // yes or no
    if (!(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) {
      ++left_out;
      continue;
    }
    auto at = std::ranges::find(kinds, kind, &Figures::kind);
    if (at == kinds.end()) at = kinds.insert(kinds.end(), Figures{kind, {}, {}});
    at->published.push_back(results::shown(kind, x));
    at->predicted.push_back(results::shown(kind, y));
    ++drawn;
  }
  if (drawn == 0) throw UserError("command line", "PATH", "no figures to draw in it");
  std::ranges::stable_sort(kinds, std::greater{},
                           [](const Figures& f) { return f.published.size(); });
  plot::Chart chart;
  chart.panels.clear();
  for (const Figures& f : kinds) {
    chart.panels.push_back(panel_of(f));
    within += f.within();
  }
  chart.title =
      fmt::format("{} of {} predictions within 10 % of what was published", within, drawn);
  if (left_out > 0)
    chart.title += fmt::format("\n{} without a positive figure are left out", left_out);
  chart.columns = std::min(kMostKindColumns, kinds.size());
  const std::size_t lines = (kinds.size() + chart.columns - 1) / chart.columns;
  chart.height_px = static_cast<int>(100 + (kinds.size() == 1 ? 700 : 330) * lines);
  return chart;
}

}  // namespace mllmsim::charts
