#include "results/plot/narrow.hpp"

#include <algorithm>
#include <set>

#include "results/plot/layout.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::plot {
namespace {

constexpr double kAxesPx = 170;              // height of a panel of height 1
constexpr std::size_t kLettersPerLine = 46;  // of a title
constexpr double kLetterPx = 10, kAxesWidthPx = kNarrowPx - 130, kSmallTextPx = 36;

// Words on as many lines as they need; a word that is longer than a line stays whole.
std::string wrapped(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    std::size_t length = 0;
    if (!out.empty()) out += '\n';
    for (const std::string_view word : split(line, ' ')) {
      const bool fits = word == "%" || length + 1 + word.size() <= kLettersPerLine;
      if (length > 0) out += fits ? ' ' : '\n';
      length = length > 0 && fits ? length + 1 + word.size() : word.size();
      out += word;
    }
  }
  return out;
}

void thin(std::vector<Tick>& ticks) {
  std::size_t longest = 1;
  for (const Tick& t : ticks) longest = std::max(longest, t.text.size() + 1);
  const double fit = std::max(1.0, kAxesWidthPx / (kLetterPx * static_cast<double>(longest)));
  const auto every =
      static_cast<std::size_t>(1 + static_cast<double>(ticks.empty() ? 0 : ticks.size() - 1) / fit);
  std::vector<Tick> kept;
  for (std::size_t i = 0; i < ticks.size(); i += every) kept.push_back(ticks[i]);
  ticks = std::move(kept);
}

}  // namespace

Chart narrow(Chart chart) {
  const auto lines = [](const std::string& text) {
    return text.empty() ? 0.0 : 1.0 + static_cast<double>(std::ranges::count(text, '\n'));
  };
  chart.width_px = kNarrowPx;
  chart.columns = 1;
  chart.title = wrapped(chart.title);
  chart.x_label = wrapped(chart.x_label);
  thin(chart.x_ticks);
  double height = (lines(chart.title) + lines(chart.x_label) + 2) * kLinePx;
  std::set<std::string> names;
  for (Panel& panel : chart.panels) {
    panel.title = wrapped(panel.title);
    if (panel.own_x) {
      thin(panel.own_x->ticks);
      height += (1 + lines(panel.own_x->label)) * kLinePx;
    }
    if (static_cast<double>(panel.texts.size()) * kSmallTextPx > kAxesWidthPx) panel.texts.clear();
    height += lines(panel.title) * kLinePx + kAxesPx * panel.height + kGapPx;
    for (const Boxes& b : panel.boxes) names.insert(b.name);
    for (const Series& s : panel.series) names.insert(s.name);
  }
  names.erase("");
  chart.height_px = static_cast<int>(height + static_cast<double>(names.size()) * kLinePx);
  return chart;
}

}  // namespace mllmsim::plot
