// Idle time by stage.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/charts/span_look.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/run/run_fields.hpp"
#include "results/text/words.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::charts {
namespace {

std::string heading(const results::RunResult& run) {
  return fmt::format("{} ({})", run.name, run.strategy);
}

plot::Panel bubbles_panel(const results::RunResult& run, double highest) {
  plot::Panel panel;
  panel.title = heading(run) + fmt::format(": idle {:.1f} % of a step of {:.4g} s",
                                           100 * results::bubble_share(run), run.iteration.value);
  panel.y_label = "idle time (s)";
  panel.y_range = plot::Range{0, highest > 0 ? 1.12 * highest : 1};
  std::map<std::size_t, plot::Boxes> groups;  // by look: the order of every legend
  for (const results::StageRow& stage : run.stages) {
    double y = 0;
    for (std::size_t k = 0; k < kBubbleKinds; ++k) {
      const double s = stage.bubbles[k].value;
      if (s <= 0) continue;
      const auto kind = static_cast<BubbleKind>(k);
      const std::size_t l = look_of(kind);
      plot::Boxes& group = groups[l];
      group.name = results::words(kind);
      group.colour = span_looks()[l].colour;
      group.fill = span_looks()[l].fill;
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

}  // namespace

plot::Chart bubbles_chart(std::span<const results::RunResult> runs) {
  plot::Chart chart;
  chart.x_label = "pipeline stage";
  chart.panels.clear();
  double highest = 0;
  int stages = 1;
  for (const results::RunResult& run : runs) {
    if (!run.fits)
      throw UserError(run.name, "", "does not fit in memory, so it has no idle times to draw");
    for (const results::StageRow& stage : run.stages) {
      highest = std::max(highest, results::bubble_time(stage).value);
      stages = std::max(stages, stage.stage + 1);
    }
  }
  for (const results::RunResult& run : runs) chart.panels.push_back(bubbles_panel(run, highest));
  chart.x_range = plot::Range{-0.6, stages - 0.4};
  for (int s = 0; s < stages; s += 1 + stages / 33)
    chart.x_ticks.push_back({static_cast<double>(s), std::to_string(s)});
  chart.height_px = static_cast<int>(260 + 340 * runs.size());
  return chart;
}

}  // namespace mllmsim::charts
