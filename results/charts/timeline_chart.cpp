#include "results/charts/timeline_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/charts/span_look.hpp"
#include "results/charts/thin.hpp"
#include "results/plot/layout.hpp"

namespace mllmsim::charts {
namespace {

constexpr double kMargin = 0.06;       // of a lane, above and below what it shows
constexpr double kStripHeight = 0.13;  // of a lane: one communication stream
constexpr double kDigitPx = 8, kTextPx = 14;

// Where each strip is in a lane that reaches from 0 down to -1.
struct LaneLayout {
  std::array<double, kStrips> top{}, bottom{};

  explicit LaneLayout(const std::array<bool, kStrips>& present) {
    double y = -1 + kMargin;
    for (std::size_t s = kStrips - 1; s > 0; --s) {
      if (!present[s]) continue;
      bottom[s] = y;
      y += kStripHeight;
      top[s] = y - 0.02;
    }
    bottom[0] = y;
    top[0] = -kMargin;
  }
};

std::array<bool, kStrips> strips_of(const std::vector<View>& views) {
  std::array<bool, kStrips> present{};
  for (const View& view : views)
    for (const Lane& lane : view.lanes)
      for (const results::SpanRow* s : lane.spans)
        present[static_cast<std::size_t>(strip_of(s->stream))] = true;
  return present;
}

std::string title(const results::RunResult& run, const View& view) {
  double iteration = 0, bubbles = 0;
  int replicas = 0;
  for (const results::StepRow& row : run.steps) {
    if (row.step != view.step) continue;
    iteration = row.iteration.value;
    bubbles += row.bubble_share;
    ++replicas;
  }
  std::string out = fmt::format("{} ({}), step {}", run.name, run.strategy, view.step);
  if (!run.fits)
    out += ": does not fit";
  else if (replicas > 0)
    out += fmt::format(": {:.4g} s, idle {:.1f} %", iteration, 100 * bubbles / replicas);
  if (view.left_out > 0)
    out += fmt::format("\nreplica {} shown, {} more lanes with --ranks", view.lanes.front().replica,
                       view.left_out);
  return out;
}

// Draws the lanes of one run into a panel.
class Drawing {
 public:
  Drawing(const LaneLayout& lane, TimeUnit unit, Time pixel, double lane_px)
      : lane_(lane), unit_(unit), pixel_(pixel), lane_px_(lane_px) {}

  plot::Panel panel(const View& view) {
    for (std::size_t i = 0; i < view.lanes.size(); ++i) {
      const double y = -static_cast<double>(i);
      out_.y_ticks.push_back({y - 0.5, view.lanes[i].label});
      for (std::size_t strip = 0; strip < kStrips; ++strip) draw(view, view.lanes[i], strip, y);
    }
    out_.y_range = plot::Range{-static_cast<double>(view.lanes.size()), 0};
    out_.height = static_cast<double>(view.lanes.size());
    group();
    return std::move(out_);
  }

  bool merged() const { return merged_; }

 private:
  void draw(const View& view, const Lane& lane, std::size_t strip, double y) {
    std::vector<Stretch> spans;
    for (const results::SpanRow* s : lane.spans) {
      if (static_cast<std::size_t>(strip_of(s->stream)) != strip) continue;
      if (s->end < view.start || s->start > view.end) continue;
      spans.push_back({std::max(s->start, view.start), std::min(s->end, view.end), look_of(*s),
                       s->micro_batch});
    }
    for (const Stretch& s : thinned(spans, pixel_ / 2)) {
      const Time end = std::min(s.end, view.end);
      const plot::Box box{unit_(std::max(s.start, view.start)), unit_(end), y + lane_.bottom[strip],
                          y + lane_.top[strip]};
      const bool edge = end - s.start > pixel_ * 4 && !looks_[s.look].bubble;
      (edge ? wide_ : thin_)[s.look].push_back(box);
      merged_ |= s.merged;
      if (strip == 0 && s.micro_batch >= 0) number(s, box);
    }
  }

  void number(const Stretch& s, const plot::Box& box) {
    const std::string text = std::to_string(s.micro_batch);
    const double px = (s.end - s.start) / pixel_;
    const double high_px = (box.y1 - box.y0) * lane_px_;
    if (px < kDigitPx * static_cast<double>(text.size()) + 4 || high_px < kTextPx) return;
    out_.texts.push_back({(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, text, plot::Anchor::centre,
                          looks_[s.look].dark ? plot::Colour{0xffffff} : plot::kInkOnBox});
  }

  void group() {
    for (std::size_t l = 0; l < looks_.size(); ++l) {
      const SpanLook& look = looks_[l];
      if (!thin_[l].empty())
        out_.boxes.push_back({look.name, look.colour, look.fill, false, std::move(thin_[l])});
      if (!wide_[l].empty())
        out_.boxes.push_back({look.name, look.colour, look.fill, true, std::move(wide_[l])});
    }
  }

  const std::vector<SpanLook>& looks_ = span_looks();
  const LaneLayout& lane_;
  TimeUnit unit_;
  Time pixel_;
  double lane_px_;
  plot::Panel out_;
  // By look.
  std::vector<std::vector<plot::Box>> thin_{looks_.size()}, wide_{looks_.size()};
  bool merged_ = false;
};

// Empty groups of all looks first, so that the legend has their order whatever is drawn first.
void order_legend(std::vector<plot::Panel>& panels) {
  std::vector<plot::Boxes> names;
  for (const SpanLook& look : span_looks()) {
    const bool used = std::any_of(panels.begin(), panels.end(), [&](const plot::Panel& p) {
      return std::any_of(p.boxes.begin(), p.boxes.end(),
                         [&](const plot::Boxes& b) { return b.name == look.name; });
    });
    if (used) names.push_back({look.name, look.colour, look.fill, false, {}});
  }
  panels.front().boxes.insert(panels.front().boxes.begin(), names.begin(), names.end());
}

}  // namespace

TimeUnit unit_for(Time longest) {
  if (longest >= Time{1'000'000'000}) return {"s", 1};
  if (longest >= Time{1'000'000}) return {"ms", 1e3};
  return {"us", 1e6};
}

plot::Chart timeline_chart(std::span<const results::RunResult> runs, const Choice& choice) {
  std::vector<View> views;
  Time start{INT64_MAX}, end{};
  std::size_t lanes = 0;
  std::vector<plot::Tick> labels;
  for (const results::RunResult& run : runs) {
    views.push_back(view_of(run, choice));
    start = std::min(start, views.back().start);
    end = std::max(end, views.back().end);
    lanes += views.back().lanes.size();
    for (const Lane& lane : views.back().lanes) labels.push_back({0, lane.label});
  }
  const LaneLayout lane(strips_of(views));
  const TimeUnit unit = unit_for(end - start);

  constexpr double kAroundPx = 170, kPanelPx = 45;
  const double lane_px = std::clamp(560.0 / static_cast<double>(lanes), 34.0, 90.0);
  plot::Chart chart;
  chart.height_px = static_cast<int>(kAroundPx + kPanelPx * static_cast<double>(runs.size()) +
                                     lane_px * static_cast<double>(lanes));
  chart.x_range = plot::Range{unit(start), unit(end)};
  const double across = plot::axes_width_px(chart.width_px, labels);
  const Time pixel{std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>((end - start).value) / across))};
  chart.panels.clear();
  bool merged = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Drawing drawing(lane, unit, pixel, lane_px);
    chart.panels.push_back(drawing.panel(views[i]));
    chart.panels.back().title = title(runs[i], views[i]);
    merged |= drawing.merged();
  }
  order_legend(chart.panels);
  chart.x_label = fmt::format("time ({})", unit.name);
  if (merged) chart.x_label += "; spans thinner than a pixel are merged, --zoom shows them";
  return chart;
}

}  // namespace mllmsim::charts
