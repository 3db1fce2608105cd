#include "results/plot/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace mllmsim::plot {
namespace {

// Okabe and Ito, Color Universal Design (2008); yellow last, as it is faint on white.
constexpr std::array<Colour, 8> kColours{0x000000, 0xe69f00, 0x56b4e9, 0x009e73,
                                         0x0072b2, 0xd55e00, 0xcc79a7, 0xf0e442};
constexpr Colour kGuideColour = 0x606060;

constexpr double kCharacter = 0.6;  // of a font's size: mean width in Sans
constexpr double kEdgePx = 8, kRightPx = 30;
constexpr double kSwatchPx = 26;  // of the legend

std::size_t lines(const std::string& text) {
  return text.empty() ? 0
                      : 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

double text_px(const std::string& text) {
  std::size_t longest = 0, line = 0;
  for (const char c : text) {
    line = c == '\n' ? 0 : line + ((static_cast<unsigned char>(c) & 0xc0) != 0x80);
    longest = std::max(longest, line);
  }
  return kCharacter * kFontPx * static_cast<double>(longest);
}

double left_px(const std::vector<Tick>& y_ticks, bool y_label) {
  double widest = text_px("0.00001");
  if (!y_ticks.empty()) widest = 0;
  for (const Tick& t : y_ticks) widest = std::max(widest, text_px(t.text));
  return 14 + widest + (y_label ? kLinePx + 4 : 0);
}

// Colours and markers by name, in the order of the chart.
class Looks {
 public:
  DrawnSeries drawn(const Series& s) {
    DrawnSeries d{s, kGuideColour, 0};
    if (s.style == SeriesStyle::guide) return d;
    const auto [at, added] = by_name_.try_emplace(s.name, Look{});
    if (added || s.name.empty()) {
      at->second = {s.colour ? *s.colour : kColours[coloured_++ % kColours.size()],
                    s.style == SeriesStyle::points ? marked_++ : 0};
    }
    d.colour = s.colour.value_or(at->second.colour);
    d.marker = at->second.marker;
    return d;
  }

 private:
  struct Look {
    Colour colour = 0;
    std::size_t marker = 0;
  };
  std::map<std::string, Look> by_name_;
  std::size_t coloured_ = 0, marked_ = 0;
};

int depth(SeriesStyle style) { return has_low(style) ? 0 : style == SeriesStyle::points ? 1 : 2; }

// --- the legend ---

struct Entry {
  std::string name;
  std::optional<Boxes> box;
  std::optional<DrawnSeries> series;
};

std::vector<Entry> legend_entries(const std::vector<Placed>& panels, const Chart& chart) {
  std::vector<Entry> out;
  const auto add = [&](Entry entry) {
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const Entry& e) { return e.name == entry.name; });
    if (!entry.name.empty() && !known) out.push_back(std::move(entry));
  };
  for (std::size_t p = 0; p < panels.size(); ++p) {
    for (const Boxes& b : panels[p].boxes)
      add({b.name, Boxes{"", b.colour, b.fill, false, {}}, {}});
    for (const Series& s : chart.panels[p].series)  // in the order of the chart, not of drawing
      for (const DrawnSeries& d : panels[p].series)
        if (d.series.name == s.name && d.series.style == s.style) add({s.name, {}, d});
  }
  return out;
}

struct LegendGrid {
  std::size_t columns = 1, rows = 0;
  double column_px = 0;
};

LegendGrid grid(const std::vector<Entry>& entries, double width_px) {
  LegendGrid g;
  if (entries.empty()) return g;
  for (const Entry& e : entries)
    g.column_px = std::max(g.column_px, kSwatchPx + 10 + text_px(e.name) + 14);
  const auto fit = static_cast<std::size_t>(std::max(1.0, width_px / g.column_px));
  g.rows = (entries.size() + fit - 1) / fit;
  g.columns = (entries.size() + g.rows - 1) / g.rows;  // as even as the rows allow
  return g;
}

// In pixels across and lines down.
Placed legend(const std::vector<Entry>& entries, const LegendGrid& g, double width_px) {
  Placed out;
  out.axes = false;
  out.x_range = Range{0, width_px};
  out.y_range = Range{0, static_cast<double>(g.rows)};
  const double start = (width_px - static_cast<double>(g.columns) * g.column_px) / 2;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t row = i / g.columns, column = i % g.columns;
    const double x = std::max(0.0, start) + static_cast<double>(column) * g.column_px;
    const double y = static_cast<double>(g.rows) - 0.5 - static_cast<double>(row);
    const double end = x + kSwatchPx;
    const Entry& e = entries[i];
    if (e.box) {
      Boxes box = *e.box;
      box.boxes = {{x, end, y - 0.3, y + 0.3}};
      out.boxes.push_back(std::move(box));
    }
    if (e.series) {
      DrawnSeries d = *e.series;
      d.series.name.clear();
      d.series.x = {x, end};
      d.series.y = {y, y};
      if (d.series.style == SeriesStyle::points) d.series.x = {(x + end) / 2}, d.series.y = {y};
      if (has_low(d.series.style)) d.series.y = {y + 0.3, y + 0.3};
      if (has_low(d.series.style)) d.series.y_low = {y - 0.3, y - 0.3};
      if (d.series.style == SeriesStyle::steps) d.series.style = SeriesStyle::line;
      out.series.push_back(std::move(d));
    }
    out.texts.push_back({end + 8, y, e.name, Anchor::left, 0});
  }
  return out;
}

// What all panels show of x, as they share it.
std::optional<Range> common_x(const Chart& chart) {
  if (chart.x_range || chart.panels.size() == 1) return chart.x_range;
  Range r{INFINITY, -INFINITY};
  const auto cover = [&](double x) { r = {std::min(r.low, x), std::max(r.high, x)}; };
  for (const Panel& p : chart.panels) {
    for (const Boxes& b : p.boxes)
      for (const Box& box : b.boxes) cover(box.x0), cover(box.x1);
    for (const Series& s : p.series)
      for (const double x : s.x) cover(x);
  }
  if (!(r.low < r.high)) return std::nullopt;
  return r;
}

// A line each, the first in the middle of the kLinePx below `top_px`.
void add_lines(const std::string& text, double x_px, double top_px, const Chart& chart,
               std::vector<Text>& to) {
  std::size_t from = 0;
  for (std::size_t line = 0; line < lines(text); ++line) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const double y_px = top_px - (static_cast<double>(line) + 0.5) * kLinePx;
    to.push_back({x_px / chart.width_px, y_px / chart.height_px, text.substr(from, end - from),
                  Anchor::centre, 0});
    from = end + 1;
  }
}

Placed without_place(const Chart& chart, const Panel& panel, Looks& looks) {
  Placed out;
  out.y_label = panel.y_label;
  out.log_x = panel.own_x ? panel.own_x->log : chart.log_x;
  out.log_y = panel.log_y;
  out.y_range = panel.y_range;
  out.x_ticks = panel.own_x ? panel.own_x->ticks : chart.x_ticks;
  out.y_ticks = panel.y_ticks;
  out.boxes = panel.boxes;
  for (const Series& s : panel.series) out.series.push_back(looks.drawn(s));
  std::stable_sort(out.series.begin(), out.series.end(), [](const auto& a, const auto& b) {
    return depth(a.series.style) < depth(b.series.style);
  });
  out.texts = panel.texts;
  out.axes = !(out.boxes.empty() && out.series.empty() && out.texts.empty());  // an empty cell
  return out;
}

const std::string& x_label_of(const Chart& chart, const Panel& panel) {
  return panel.own_x ? panel.own_x->label : chart.x_label;
}

// What the panels of a row need around their axes.
struct Row {
  double title_px = 0, ticks_px = 0, label_px = 0, height = 0;

  void add(const Panel& panel, const std::string& x_label, std::size_t tick_lines) {
    title_px = std::max(title_px, kLinePx * static_cast<double>(lines(panel.title)));
    label_px = std::max(label_px, kLinePx * static_cast<double>(lines(x_label)));
    if (tick_lines > 0)
      ticks_px = std::max(ticks_px, 8 + kLinePx * static_cast<double>(tick_lines));
    height = std::max(height, panel.height);
  }
  double below_px() const { return ticks_px + label_px; }
};

}  // namespace

double axes_width_px(int width_px, const std::vector<Tick>& y_ticks) {
  return width_px - left_px(y_ticks, true) - kRightPx;
}

std::vector<Placed> layout(const Chart& chart) {
  Looks looks;
  std::vector<Placed> out;
  const std::size_t columns = std::min(chart.columns, chart.panels.size());
  const std::size_t rows = (chart.panels.size() + columns - 1) / columns;
  std::vector<double> left(columns);  // what each column needs beside its axes
  std::vector<Row> row(rows);
  std::size_t tick_lines = 1;
  for (const Tick& t : chart.x_ticks) tick_lines = std::max(tick_lines, lines(t.text));
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const Panel& panel = chart.panels[p];
    out.push_back(without_place(chart, panel, looks));
    out[p].x_labels = panel.own_x || p + columns >= chart.panels.size();
    double& margin = left[p % columns];
    margin = std::max(margin, left_px(panel.y_ticks, !panel.y_label.empty()));
    row[p / columns].add(panel, out[p].x_labels ? x_label_of(chart, panel) : "",
                         out[p].x_labels ? tick_lines : 0);
  }

  const double w = chart.width_px, h = chart.height_px;
  const double title_px = kLinePx * static_cast<double>(lines(chart.title));
  const std::vector<Entry> entries = legend_entries(out, chart);
  const LegendGrid g = grid(entries, w - 2 * kEdgePx);
  const double legend_px = static_cast<double>(g.rows) * kLinePx + (g.rows > 0 ? 8 : 0);
  double axes_px = h - 2 * kEdgePx - title_px - legend_px - kGapPx * static_cast<double>(rows - 1);
  double heights = 0;
  for (const Row& r : row) axes_px -= r.title_px + r.below_px(), heights += r.height;
  axes_px = std::max(20.0, axes_px);

  const double cell = w / static_cast<double>(columns);
  add_lines(chart.title, columns == 1 ? (left[0] + w - kRightPx) / 2 : w / 2, h - kEdgePx, chart,
            out[0].page_texts);
  double y = h - kEdgePx - title_px;
  for (std::size_t p = 0; p < out.size(); ++p) {
    Placed& placed = out[p];
    const Row& r = row[p / columns];
    const double from = cell * static_cast<double>(p % columns);
    const double x0 = from + left[p % columns], x1 = from + cell - kRightPx;
    const double top = y - r.title_px, bottom = top - axes_px * r.height / heights;
    add_lines(chart.panels[p].title, (x0 + x1) / 2, y, chart, placed.page_texts);
    placed.left = x0 / w;
    placed.right = x1 / w;
    placed.top = top / h;
    placed.bottom = bottom / h;
    const auto& own = chart.panels[p].own_x;
    placed.x_range = own ? own->range : common_x(chart);
    if (placed.x_labels)
      add_lines(x_label_of(chart, chart.panels[p]), (x0 + x1) / 2, bottom - r.ticks_px, chart,
                placed.page_texts);
    if (p % columns + 1 == columns) y = bottom - r.below_px() - kGapPx;
  }
  if (!entries.empty()) {
    out.push_back(legend(entries, g, w - 2 * kEdgePx));
    out.back().left = kEdgePx / w;
    out.back().right = (w - kEdgePx) / w;
    out.back().bottom = kEdgePx / h;
    out.back().top = (kEdgePx + static_cast<double>(g.rows) * kLinePx) / h;
  }
  return out;
}

}  // namespace mllmsim::plot
