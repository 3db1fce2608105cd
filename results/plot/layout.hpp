// Where the parts of a chart go on the page, decided once for both backends: panels in rows and
// columns with aligned axes, and the legend as one more panel without axes. Text widths are
// estimated from the number of characters, as fonts are known only to gnuplot.
#pragma once

#include <vector>

#include "results/plot/chart.hpp"

namespace mllmsim::plot {

inline constexpr int kFontPx = 16, kSmallFontPx = 12;
inline constexpr double kLine = 1.4;  // of a font's size: from line to line
inline constexpr double kLinePx = kLine * kFontPx;
inline constexpr double kGapPx = 16;  // between rows of panels

struct DrawnSeries {
  Series series;
  Colour colour = 0;
  std::size_t marker = 0;  // a number for its kind of marker
};

// A panel with all that a backend needs to draw it.
struct Placed {
  double left = 0, right = 1, bottom = 0, top = 1;  // of the axes, shares of the page
  bool axes = true;                                 // the legend has none
  bool x_labels = true;  // only the lowest of a column, or those with an axis of their own
  std::string y_label;
  bool log_x = false, log_y = false;
  std::optional<Range> x_range, y_range;
  std::vector<Tick> x_ticks, y_ticks;
  std::vector<Boxes> boxes;
  std::vector<DrawnSeries> series;  // in the order of drawing: bands, points, lines
  std::vector<Text> texts;
  std::vector<Text> page_texts;  // titles: x and y are shares of the page
};

std::vector<Placed> layout(const Chart& chart);

// How many pixels the axes of a chart of this width have for x, with the longest of these labels on
// the y-axis; for those who leave out what nobody could see.
double axes_width_px(int width_px, const std::vector<Tick>& y_ticks);

}  // namespace mllmsim::plot
