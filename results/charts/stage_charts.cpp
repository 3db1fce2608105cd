// Bubbles and memory by stage.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "results/charts/span_look.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/plot/layout.hpp"
#include "results/run/run_fields.hpp"

namespace mllmsim::charts {
namespace {

constexpr double kGib = 1 << 30;

std::string heading(const results::RunResult& run) {
  return fmt::format("{} ({})", run.name, run.strategy);
}

plot::Panel bubbles_panel(const results::RunResult& run, double highest, SpanLooks& looks) {
  plot::Panel panel;
  panel.title = heading(run) + fmt::format(": bubbles {:.1f} % of a step of {:.4g} s",
                                           100 * results::bubble_share(run), run.iteration.value);
  panel.y_label = "bubbles (s)";
  panel.y_range = plot::Range{0, highest > 0 ? 1.12 * highest : 1};
  std::map<std::size_t, plot::Boxes> groups;  // by look: the order of every legend
  for (const results::StageRow& stage : run.stages) {
    double y = 0;
    for (std::size_t k = 0; k < kBubbleKinds; ++k) {
      const double s = stage.bubbles[k].value;
      if (s <= 0) continue;
      const std::size_t l = looks.of("bubble", Names<BubbleKind>::list[k]);
      plot::Boxes& group = groups[l];
      group.name = Names<BubbleKind>::list[k];
      group.colour = looks[l].colour;
      group.fill = looks[l].fill;
      group.boxes.push_back({stage.stage - 0.4, stage.stage + 0.4, y, y + s});
      y += s;
    }
    if (run.stages.size() <= 24)
      panel.texts.push_back({static_cast<double>(stage.stage), y + 0.04 * panel.y_range->high,
                             fmt::format("{:.0f} %", 100 * y / run.iteration.value),
                             plot::Anchor::centre, 0});
  }
  for (auto& [look, group] : groups) panel.boxes.push_back(std::move(group));
  return panel;
}

// Viridis, which colour-blind readers can follow from dark to light, without its faint end.
plot::Colour ramp(double share) {
  constexpr std::array<std::array<double, 3>, 5> kViridis{
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {200, 215, 50}}};
  const double at = std::clamp(share, 0.0, 1.0) * (kViridis.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  plot::Colour out = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    const double f = at - static_cast<double>(low);
    const double v = kViridis[low][c] * (1 - f) + kViridis[low + 1][c] * f;
    out = out << 8 | static_cast<plot::Colour>(std::lround(v));
  }
  return out;
}

// At most four points per pixel: the first, lowest, highest and last, in the order of time.
plot::Series thinned(const std::vector<const results::MemoryRow*>& rows, TimeUnit unit,
                     Time pixel) {
  plot::Series s;
  const auto add = [&](const results::MemoryRow& row) {
    s.x.push_back(unit(row.time));
    s.y.push_back(static_cast<double>(row.bytes.value) / kGib);
  };
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i, low = i, high = i;
    const std::int64_t cell = rows[i]->time.value / pixel.value;
    for (; end < rows.size() && rows[end]->time.value / pixel.value == cell; ++end) {
      if (rows[end]->bytes < rows[low]->bytes) low = end;
      if (rows[end]->bytes > rows[high]->bytes) high = end;
    }
    std::array<std::size_t, 4> kept{i, low, high, end - 1};
    std::sort(kept.begin(), kept.end());
    for (auto k = kept.begin(); k != std::unique(kept.begin(), kept.end()); ++k) add(*rows[*k]);
    i = end;
  }
  return s;
}

plot::Panel memory_panel(const results::RunResult& run, const View& view, TimeUnit unit,
                         Time pixel) {
  plot::Panel panel;
  panel.title = heading(run) + fmt::format(", step {}", view.step);
  panel.y_label = "memory of a GPU (GiB)";
  double highest = static_cast<double>(run.gpu_memory.value) / kGib;
  for (std::size_t i = 0; i < view.lanes.size(); ++i) {
    const Lane& lane = view.lanes[i];
    std::vector<const results::MemoryRow*> rows;
    for (const results::MemoryRow& m : run.memory)
      if (m.step == view.step && m.replica == lane.replica && m.stage == lane.stage &&
          m.time <= view.end)
        rows.push_back(&m);
    if (rows.empty()) continue;
    plot::Series s = thinned(rows, unit, pixel);
    s.name = lane.label;
    s.style = plot::SeriesStyle::steps;
    s.x.push_back(unit(view.end));
    s.y.push_back(s.y.back());
    highest = std::max(highest, *std::max_element(s.y.begin(), s.y.end()));
    if (view.lanes.size() > 7)
      s.colour = ramp(static_cast<double>(i) / static_cast<double>(view.lanes.size() - 1));
    panel.series.push_back(std::move(s));
  }
  const double limit = static_cast<double>(run.gpu_memory.value) / kGib;
  if (limit > 0)
    panel.series.push_back({"what a GPU has",
                            {unit(view.start), unit(view.end)},
                            {limit, limit},
                            plot::SeriesStyle::guide,
                            {},
                            {}});
  panel.y_range = plot::Range{0, 1.05 * highest};
  return panel;
}

}  // namespace

plot::Chart bubbles_chart(std::span<const results::RunResult> runs) {
  plot::Chart chart;
  chart.x_label = "pipeline stage";
  chart.panels.clear();
  SpanLooks looks;
  double highest = 0;
  int stages = 1;
  for (const results::RunResult& run : runs)
    for (const results::StageRow& stage : run.stages) {
      highest = std::max(highest, results::bubble_time(stage).value);
      stages = std::max(stages, stage.stage + 1);
    }
  for (const results::RunResult& run : runs)
    chart.panels.push_back(bubbles_panel(run, highest, looks));
  chart.x_range = plot::Range{-0.6, stages - 0.4};
  for (int s = 0; s < stages; s += 1 + stages / 33)
    chart.x_ticks.push_back({static_cast<double>(s), std::to_string(s)});
  chart.height_px = static_cast<int>(260 + 340 * runs.size());
  return chart;
}

plot::Chart memory_chart(std::span<const results::RunResult> runs, const Choice& choice) {
  std::vector<View> views;
  Time start{INT64_MAX}, end{};
  for (const results::RunResult& run : runs) {
    views.push_back(view_of(run, choice));
    // Replicas run alike, and their lines would hide each other: the first, unless ranks are
    // chosen.
    std::vector<Lane>& lanes = views.back().lanes;
    if (choice.ranks.empty())
      std::erase_if(lanes,
                    [first = lanes.front().replica](const Lane& l) { return l.replica != first; });
    start = std::min(start, views.back().start);
    end = std::max(end, views.back().end);
  }
  plot::Chart chart;
  const TimeUnit unit = unit_for(end - start);
  const Time pixel{1 + static_cast<std::int64_t>(static_cast<double>((end - start).value) /
                                                 plot::axes_width_px(chart.width_px, {}))};
  chart.x_label = fmt::format("time ({})", unit.name);
  chart.x_range = plot::Range{unit(start), unit(end)};
  chart.panels.clear();
  for (std::size_t i = 0; i < runs.size(); ++i)
    chart.panels.push_back(memory_panel(runs[i], views[i], unit, pixel));
  chart.height_px = static_cast<int>(260 + 340 * runs.size());
  return chart;
}

}  // namespace mllmsim::charts
