// Memory of each stage's GPU over a step, as a stack by name: what it always holds (sim/account's
// Holding), what forwards left, what a backward works with on top, and copies of gradients at the
// step's end; and a line at the peak of all steps as nvidia-smi would show it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/charts/ticks.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/plot/layout.hpp"
#include "results/text/words.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::charts {
namespace {

constexpr double kGib = 1 << 30;
constexpr std::size_t kMostStageColumns = 4, kMostStages = 16;

double gib(Bytes b) { return static_cast<double>(b.value) / kGib; }

using Rows = std::vector<const results::MemoryRow*>;

Rows rows_of(const results::RunResult& run, const View& view, const Lane& lane) {
  Rows out;
  for (const results::MemoryRow& m : run.memory)
    if (m.step == view.step && m.replica == lane.replica && m.stage == lane.stage &&
        m.time <= view.end)
      out.push_back(&m);
  return out;
}

// At most four changes per pixel: the first, lowest, highest and last, in the order of time.
Rows thinned(const Rows& rows, Time pixel) {
  Rows out;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i, low = i, high = i;
    const std::int64_t cell = rows[i]->time.value / pixel.value;
    for (; end < rows.size() && rows[end]->time.value / pixel.value == cell; ++end) {
      if (rows[end]->bytes < rows[low]->bytes) low = end;
      if (rows[end]->bytes > rows[high]->bytes) high = end;
    }
    std::array<std::size_t, 4> kept{i, low, high, end - 1};
    std::sort(kept.begin(), kept.end());
    for (auto k = kept.begin(); k != std::unique(kept.begin(), kept.end()); ++k)
      out.push_back(rows[*k]);
    i = end;
  }
  return out;
}

plot::Series area(std::string_view name, plot::Colour colour, std::vector<double> x,
                  std::vector<double> y, std::vector<double> lows) {
  return {std::string(name),       std::move(x),    std::move(y),
          plot::SeriesStyle::area, std::move(lows), colour};
}

// Changes are steps: each x but the first and last twice.
struct Steps {
  // What forwards left; backwards' own on top; and copies of gradients on top of that.
  std::vector<double> x, kept, worked, all;
};
Steps over_time(const Rows& rows, const View& view, TimeUnit unit, double base) {
  Steps out;
  const auto add = [&](double x, double kept, double worked, double all) {
    out.x.push_back(x), out.kept.push_back(kept), out.worked.push_back(worked),
        out.all.push_back(all);
  };
  for (const results::MemoryRow* row : rows) {
    const double at = unit(std::max(row->time, view.start));
    if (!out.x.empty()) add(at, out.kept.back(), out.worked.back(), out.all.back());
    const Bytes without = row->bytes - row->copies;
    add(at, std::max(base, gib(without - row->working)), std::max(base, gib(without)),
        std::max(base, gib(row->bytes)));
  }
  add(unit(view.end), out.kept.back(), out.worked.back(), out.all.back());
  return out;
}

constexpr std::array<plot::Colour, kHoldings> kColours{
    0x0072b2, 0x56b4e9, 0x9ad1f0, 0x009e73, 0xcc79a7, 0xb8a1c9, 0x5f5f5f, 0x8c8c8c, 0xbdbdbd};

plot::Panel stage_panel(const results::RunResult& run, const View& view, const Lane& lane,
                        const Rows& rows, TimeUnit unit, const plot::Range& shown) {
  plot::Panel panel;
  panel.title = lane.label;
  const std::vector<double> across{unit(view.start), unit(view.end)};
  double base = 0;
  const auto stage = std::ranges::find(run.stages, lane.stage, &results::StageRow::stage);
  for (std::size_t i = 0; stage != run.stages.end() && i < kHoldings; ++i) {
    if (stage->held.bytes[i].value <= 0) continue;
    const double top = base + gib(stage->held.bytes[i]);
    panel.series.push_back(area(results::words(static_cast<Holding>(i)), kColours[i], across,
                                {top, top}, {base, base}));
    base = top;
  }
  Steps steps = over_time(rows, view, unit, base);
  panel.series.push_back(area("activations", 0xe69f00, steps.x, steps.kept,
                              std::vector<double>(steps.x.size(), base)));
  if (steps.worked != steps.kept)
    panel.series.push_back(
        area("a backward's own", 0xd55e00, steps.x, steps.worked, std::move(steps.kept)));
  if (steps.all != steps.worked)
    panel.series.push_back(area("copies of gradients", 0xf0e442, std::move(steps.x),
                                std::move(steps.all), std::move(steps.worked)));
  const std::vector<double> everywhere{shown.low, shown.high};
  if (stage != run.stages.end() && stage->peak_memory.value > 0)
    panel.series.push_back({"peak of all steps, as reserved",
                            across,
                            {gib(stage->peak_memory), gib(stage->peak_memory)},
                            plot::SeriesStyle::line,
                            {},
                            plot::Colour{0xaa4499}});
  const double limit = gib(run.gpu_memory);
  if (limit > 0)
    panel.series.push_back(
        {"what a GPU has", everywhere, {limit, limit}, plot::SeriesStyle::guide, {}, {}});
  return panel;
}

// Replicas run alike: the first, unless ranks are chosen. Of very many stages the fullest.
std::size_t choose_lanes(const results::RunResult& run, const Choice& choice, View& view) {
  std::vector<Lane>& lanes = view.lanes;
  if (choice.ranks.empty())
    std::erase_if(lanes,
                  [first = lanes.front().replica](const Lane& l) { return l.replica != first; });
  if (choice.ranks.empty())
    for (Lane& l : lanes) l.label = fmt::format("stage {}", l.stage);
  std::erase_if(lanes, [&](const Lane& l) { return rows_of(run, view, l).empty(); });
  if (lanes.size() <= kMostStages) return 0;
  const auto peak = [&](const Lane& l) {
    const auto at = std::ranges::find(run.stages, l.stage, &results::StageRow::stage);
    return at == run.stages.end() ? Bytes{} : at->peak_memory;
  };
  std::ranges::stable_sort(lanes, [&](const Lane& a, const Lane& b) { return peak(a) > peak(b); });
  const std::size_t left_out = lanes.size() - kMostStages;
  lanes.erase(lanes.begin() + kMostStages, lanes.end());
  std::ranges::sort(lanes, {}, [](const Lane& l) { return std::pair(l.replica, l.stage); });
  return left_out;
}

}  // namespace

plot::Chart memory_chart(std::span<const results::RunResult> runs, const Choice& choice) {
  std::vector<View> views;
  Time start{INT64_MAX}, end{};
  std::size_t columns = 1;
  double highest = 0;
  std::string fullest;
  for (const results::RunResult& run : runs) {
    views.push_back(view_of(run, choice));
    if (const std::size_t left_out = choose_lanes(run, choice, views.back()); left_out > 0)
      fullest += fmt::format("\n{} stages of {} ({}) that keep less are left out", left_out,
                             run.name, run.strategy);
    start = std::min(start, views.back().start);
    end = std::max(end, views.back().end);
    columns = std::max(columns, std::min(kMostStageColumns, views.back().lanes.size()));
  }
  plot::Chart chart;
  const TimeUnit unit = unit_for(end - start);
  const double panel_px = plot::axes_width_px(chart.width_px, {}) / static_cast<double>(columns);
  const Time pixel{1 +
                   static_cast<std::int64_t>(static_cast<double>((end - start).value) / panel_px)};
  chart.title = fmt::format("{}: memory of a GPU of each stage over a step{}",
                            runs[0].model.empty() ? runs[0].name : runs[0].model, fullest);
  chart.x_label = fmt::format("time ({})", unit.name);
  chart.x_range = plot::Range{unit(start), unit(end)};
  constexpr double kTickPx = 60;  // of a number and the space beside it
  chart.x_ticks = even_ticks(*chart.x_range, panel_px / kTickPx);
  chart.columns = columns;
  chart.panels.clear();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Lane& lane : views[i].lanes) {
      chart.panels.push_back(stage_panel(runs[i], views[i], lane,
                                         thinned(rows_of(runs[i], views[i], lane), pixel), unit,
                                         *chart.x_range));
      plot::Panel& panel = chart.panels.back();
      const bool first = (chart.panels.size() - 1) % columns == 0;
      if (runs.size() > 1) {
        const bool same = runs[i].name == runs[0].name;
        panel.title = (same ? "" : runs[i].name + "\n") + runs[i].strategy + ", " + panel.title;
      }
      if (first) panel.y_label = "memory (GiB)";
      for (const plot::Series& s : panel.series)
        highest = std::max(highest, *std::ranges::max_element(s.y));
    }
    // The next run starts a row.
    while (i + 1 < runs.size() && chart.panels.size() % columns != 0) chart.panels.push_back({});
  }
  for (plot::Panel& panel : chart.panels) panel.y_range = plot::Range{0, 1.05 * highest};
  if (runs.size() == 1)
    chart.title = fmt::format("{} ({}), step {}: memory of a GPU of each stage{}", runs[0].name,
                              runs[0].strategy, views[0].step, fullest);
  if (chart.panels.empty()) throw UserError(runs[0].name, "", "the run kept no memory");
  const std::size_t lines = (chart.panels.size() + columns - 1) / columns;
  chart.height_px = static_cast<int>(180 + (lines == 1 ? 380 : 260) * lines);
  return chart;
}

}  // namespace mllmsim::charts
