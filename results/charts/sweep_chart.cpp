#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "results/analysis/speed_up.hpp"
#include "results/charts/cells.hpp"
#include "results/charts/table_charts.hpp"
#include "results/run/run_tables.hpp"
#include "results/sweep/sweep_tables.hpp"
#include "results/text/figures.hpp"
#include "results/text/words.hpp"

namespace mllmsim::charts {
namespace {

constexpr std::size_t kMostLines = 12;  // that a reader can tell apart in a panel
constexpr std::size_t kMostPanels = 16, kMostFacetColumns = 3;

bool varies(const tables::Column& column, std::size_t rows) {
  for (std::size_t i = 1; i < rows; ++i)
    if (word(column, i) != word(column, 0)) return true;
  return false;
}

}  // namespace

std::vector<std::string> swept_keys(const tables::Table& runs) {
  const tables::Table known = results::runs_table({});
  const auto filled = [&](const std::string& name) {
    return (name == "model" || name == "cluster" || name == "seed") && runs.find("point") &&
           sweep::varied_column(runs, name) == name;
  };
  std::vector<std::string> keys;
  for (const auto& [name, column] : runs.columns)
    if ((!known.find(name) || filled(name)) && name != "point" && name != "strategy.name" &&
        varies(column, runs.rows()))
      keys.push_back(name);
  return keys;
}

std::string model_of(const tables::Table& runs) {
  std::string name;
  const tables::Column* model = runs.find("model");
  for (std::size_t i = 0; model && i < runs.rows(); ++i) {
    const std::string one = word(*model, i);
    if (!name.empty() && !one.empty() && one != name) return "";
    if (name.empty()) name = one;
  }
  return name;
}

namespace {

std::string before_title(const tables::Table& runs) {
  const std::string model = model_of(runs);
  return model.empty() ? "" : model + ": ";
}

// "micro-batch size" of "micro-batch size (samples)".
std::string without_unit(const std::string& words) { return words.substr(0, words.find(" (")); }

// One row of the sweep that is drawn.
struct SweepPoint {
  std::string strategy, others;  // "baseline"; ", nodes 4, tensor-parallel size 2"
  std::string label;             // what a reader called it; empty in a sweep
  std::string x_word;
  double x = 0, y = 0;
  analysis::Cost cost;
};

struct Points {
  std::string x_key;
  std::string choices;  // for --where: each key that is left, with its values
  std::vector<SweepPoint> points;
  std::size_t misfits = 0, unplanned = 0;  // left out: too little memory; no plan or no scenario
  std::size_t without_base = 0;            // nothing to be compared with
  bool words = false;                      // x are words
};

analysis::Cost cost_of(const tables::Table& runs, std::size_t row) {
  const tables::Column *work = runs.find("work"), *samples = runs.find("samples"),
                       *days = runs.find("gpu_days");
  return {work ? word(*work, row) : "", days ? number(*days, row).value_or(0) : 0,
          samples ? number(*samples, row).value_or(1) : 1};
}

// "\n  cluster.nodes=4, 8 or 16", or nothing if there is one value.
std::string choices_of(const tables::Table& runs, const std::string& key) {
  const tables::Column& column = *runs.find(key);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < runs.rows(); ++i)
    if (std::ranges::find(values, word(column, i)) == values.end())
      values.push_back(word(column, i));
  if (values.size() < 2) return "";
  std::string list = values.front();
  for (std::size_t i = 1; i < values.size(); ++i)
    list += (i + 1 < values.size() ? ", " : " or ") + values[i];
  return fmt::format("\n  {}={}", key, list);
}

Points points_of(const tables::Table& runs, const SweepPicture& picture) {
  const std::vector<std::string> keys = swept_keys(runs);
  Points out;
  out.x_key = picture.x;
  for (const std::string& key : keys)  // the first that --where leaves
    if (out.x_key.empty() && !picture.where.contains(key)) out.x_key = key;
  if (out.x_key.empty() && !keys.empty()) out.x_key = keys.front();
  const tables::Column* x = out.x_key.empty() ? nullptr : &column_of(runs, out.x_key, "--x");
  const tables::Column& y = column_of(runs, picture.y, "--y");
  const tables::Column &strategy = column_of(runs, "strategy", "--y"),
                       &fits = column_of(runs, "fits", "--y"),
                       &steps = column_of(runs, "simulated_steps", "--y");
  if (runs.rows() > 0 && !number(y, 0))
    throw UserError("command line", "--y", picture.y + " is not a column of numbers");
  for (const auto& [key, value] : picture.where) column_of(runs, key, "--where");
  for (std::size_t i = 0; i < runs.rows(); ++i) {
    const bool wanted = std::all_of(picture.where.begin(), picture.where.end(), [&](const auto& w) {
      return word(*runs.find(w.first), i) == w.second;
    });
    if (!wanted) continue;
    if (*number(fits, i) == 0 || !std::isfinite(*number(y, i))) {
      ++(number(steps, i) == 0.0 ? out.unplanned : out.misfits);
      continue;
    }
    SweepPoint p;
    p.strategy = word(strategy, i);
    for (const std::string& key : keys)
      if (key != out.x_key && !picture.where.contains(key))
        p.others +=
            ", " + without_unit(results::words_of_column(key)) + " " + word(*runs.find(key), i);
    if (x) {
      out.words |= !number(*x, i);
      p.x_word = word(*x, i);
      p.x = number(*x, i).value_or(0);
    }
    p.y = results::shown(picture.y, *number(y, i));
    p.cost = cost_of(runs, i);
    if (i < picture.labels.size()) p.label = picture.labels[i];
    out.points.push_back(std::move(p));
  }
  if (out.points.empty())
    throw UserError("command line", "", "nothing to draw: no row fits in memory and all --where");
  for (const std::string& key : keys)
    if (key != out.x_key && !picture.where.contains(key)) out.choices += choices_of(runs, key);
  if (!picture.where.contains("strategy")) out.choices += choices_of(runs, "strategy");
  return out;
}

// Words get places in the order they appear; few numbers get ticks where they are.
void set_x(Points& points, plot::Chart& chart) {
  std::vector<std::string> seen;
  std::set<double> numbers;
  for (SweepPoint& p : points.points) {
    if (points.words) {
      auto at = std::find(seen.begin(), seen.end(), p.x_word);
      if (at == seen.end()) at = seen.insert(seen.end(), p.x_word);
      p.x = static_cast<double>(at - seen.begin());
    }
    numbers.insert(p.x);
  }
  chart.x_label = results::words_of_column(points.x_key);
  for (std::size_t i = 0; i < seen.size(); ++i)
    chart.x_ticks.push_back({static_cast<double>(i), seen[i]});
  if (points.words) {
    chart.x_range = plot::Range{-0.5, static_cast<double>(seen.size()) - 0.5};
    return;
  }
  const double low = *numbers.begin(), high = *numbers.rbegin();
  chart.log_x = low > 0 && high >= 8 * low;
  constexpr std::size_t kMostTicks = 12;
  if (numbers.size() <= kMostTicks)
    for (const double x : numbers) chart.x_ticks.push_back({x, fmt::format("{:g}", x)});
  const double edge = high > low ? 0.04 : 0.5;
  chart.x_range = chart.log_x ? plot::Range{low * std::pow(high / low, -edge),
                                            high * std::pow(high / low, edge)}
                              : plot::Range{low - edge * (high > low ? high - low : 1),
                                            high + edge * (high > low ? high - low : 1)};
}

// One line, drawn over its points.
void add_line(const std::string& name, std::vector<std::pair<double, double>> all, bool joined,
              plot::Panel& panel) {
  std::sort(all.begin(), all.end());
  plot::Series line;
  line.name = name;
  for (const auto& [x, y] : all) line.x.push_back(x), line.y.push_back(y);
  plot::Series dots = line;
  dots.style = plot::SeriesStyle::points;
  if (line.x.size() > 1 && joined) panel.series.push_back(line);
  panel.series.push_back(dots);
}

// A line for each strategy and value of what else varies; if those are too many for one panel, a
// panel for each value of what else varies.
void add_lines(const Points& points, plot::Chart& chart) {
  using Line = std::vector<std::pair<double, double>>;
  std::vector<std::pair<std::string, Line>> lines;
  std::vector<std::string> strategies, facets;
  const auto add = [](std::vector<std::string>& to, const std::string& value) {
    if (std::ranges::find(to, value) == to.end()) to.push_back(value);
  };
  for (const SweepPoint& p : points.points) {
    const std::string name = p.strategy + p.others;
    auto at = std::ranges::find(lines, name, &std::pair<std::string, Line>::first);
    if (at == lines.end()) at = lines.insert(lines.end(), {name, {}});
    at->second.emplace_back(p.x, p.y);
    add(strategies, p.strategy);
    add(facets, p.others);
  }
  if (lines.size() <= kMostLines) {
    for (const auto& [name, line] : lines) add_line(name, line, !points.words, chart.panel());
    return;
  }
  if (strategies.size() > kMostLines || facets.size() > kMostPanels)
    throw UserError("command line", "--where",
                    fmt::format("{} lines are too many to tell apart; choose with --where "
                                "KEY=VALUE, once or more:{}",
                                lines.size(), points.choices));
  chart.panels.resize(facets.size(), chart.panel());
  chart.columns = std::min(kMostFacetColumns, facets.size());
  for (std::size_t f = 0; f < facets.size(); ++f) {
    plot::Panel& panel = chart.panels[f];
    panel.title = facets[f].substr(2);  // without the comma
    if (f % chart.columns != 0) panel.y_label.clear();
    for (const std::string& strategy : strategies) {
      const auto at =
          std::ranges::find(lines, strategy + facets[f], &std::pair<std::string, Line>::first);
      if (at != lines.end()) add_line(strategy, at->second, !points.words, panel);
    }
  }
  const std::size_t rows = (facets.size() + chart.columns - 1) / chart.columns;
  chart.height_px = static_cast<int>(200 + 300 * rows);
}

void add_misfits(const Points& points, plot::Chart& chart) {
  const std::string why = results::left_out_text(points.misfits, points.unplanned);
  if (!why.empty()) chart.title += "\nleft out: " + why;
  if (points.without_base > 0)
    chart.title += fmt::format("\n{} points of a model, data or samples of their own are left out",
                               points.without_base);
}

plot::Range from_zero(const Points& points) {
  double high = 0, low = 0;
  for (const SweepPoint& p : points.points) high = std::max(high, p.y), low = std::min(low, p.y);
  return {1.05 * low, high > low ? 1.08 * high : 1};
}

void to_speedups(Points& points, const std::string& wanted) {
  std::set<std::string> strategies;
  for (const SweepPoint& p : points.points) strategies.insert(p.strategy);
  const std::string base = !wanted.empty()                   ? wanted
                           : strategies.contains("baseline") ? "baseline"
                                                             : points.points.front().strategy;
  if (!strategies.contains(base)) {
    std::string all;
    for (const std::string& s : strategies) all += (all.empty() ? "" : ", ") + s;
    throw UserError("command line", "--baseline",
                    fmt::format("no run of {}; there are {}", base, all));
  }
  using Place = std::tuple<std::string, std::string, std::string>;
  const auto place = [](const SweepPoint& p) { return Place(p.others, p.x_word, p.cost.work); };
  std::map<Place, analysis::Cost> of_base;
  for (const SweepPoint& p : points.points)
    if (p.strategy == base) of_base.try_emplace(place(p), p.cost);  // the first
  const std::size_t all = points.points.size();
  std::erase_if(points.points, [&](const SweepPoint& p) {
    return !of_base.contains(place(p)) || p.cost.gpu_days <= 0;
  });
  points.without_base = all - points.points.size();
  if (points.points.empty())
    throw UserError("command line", "", "nothing to draw: no row has GPU-days above 0");
  for (SweepPoint& p : points.points)
    p.y = analysis::speed_up(p.cost, of_base[place(p)]).value_or(0);
}

// A strategy if that says which run it is, otherwise what the reader called the run.
std::string bar_name(const SweepPoint& p, const Points& points) {
  const auto alike = std::ranges::count(points.points, p.strategy, &SweepPoint::strategy);
  return alike > 1 && !p.label.empty() ? fmt::format("{}\n({})", p.label, p.strategy) : p.strategy;
}

void add_bars(const Points& points, plot::Chart& chart) {
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const SweepPoint& p = points.points[i];
    const auto x = static_cast<double>(i);
    plot::Boxes bar{"", 0x0072b2, plot::Fill::solid, false, {{x - 0.35, x + 0.35, 0, p.y}}};
    chart.panel().boxes.push_back(std::move(bar));
    chart.panel().texts.push_back({x, p.y + 0.03 * chart.panel().y_range->high,
                                   fmt::format("{:.2f} x", p.y), plot::Anchor::centre, 0});
    chart.x_ticks.push_back({x, bar_name(p, points)});
  }
  chart.x_range = plot::Range{-0.6, static_cast<double>(points.points.size()) - 0.4};
}

}  // namespace

plot::Chart sweep_chart(const tables::Table& runs, const SweepPicture& picture) {
  Points points = points_of(runs, picture);
  if (points.x_key.empty())
    throw UserError("command line", "--x", "nothing was swept here; name a column to draw over");
  plot::Chart chart;
  const std::string y = results::words_of_column(picture.y);
  chart.panel().y_label = y;
  chart.panel().y_range = from_zero(points);
  set_x(points, chart);
  chart.title =
      fmt::format("{}{} over {}", before_title(runs), without_unit(y), without_unit(chart.x_label));
  add_lines(points, chart);
  add_misfits(points, chart);
  return chart;
}

plot::Chart speedup_chart(const tables::Table& runs, const SweepPicture& picture) {
  SweepPicture days = picture;
  days.y = "gpu_days";
  Points points = points_of(runs, days);
  to_speedups(points, picture.baseline);
  plot::Chart chart;
  chart.title = before_title(runs) + "speed-up in GPU-days";
  chart.panel().y_label = "speed-up (times)";
  chart.panel().y_range = from_zero(points);
  if (points.x_key.empty()) {
    add_bars(points, chart);
    const bool named = std::ranges::any_of(
        points.points, [&](const SweepPoint& p) { return bar_name(p, points) != p.strategy; });
    chart.x_label = named ? "run (strategy)" : "strategy";
  } else {
    set_x(points, chart);
    add_lines(points, chart);
  }
  for (plot::Panel& panel : chart.panels)
    panel.series.push_back(
        {"", {chart.x_range->low, chart.x_range->high}, {1, 1}, plot::SeriesStyle::guide, {}, {}});
  add_misfits(points, chart);
  return chart;
}

}  // namespace mllmsim::charts
