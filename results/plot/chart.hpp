// A chart as plain data, and the one function that draws it.
//
// A chart is one or more panels in rows of some columns, with one legend below. They share an
// x-axis unless a panel has its own. A panel holds filled boxes, series of points and texts, drawn
// in this order. Series without a colour get those of Okabe and Ito, which colour-blind readers can
// tell apart; what has the same name in several panels looks the same and is in the legend once.
// The same chart gives the same bytes on the same machine. Backends (backend.hpp) are chosen when
// the program is built. An SVG is dark where its reader's page or system is (dark_svg.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/enum_names.hpp"

namespace mllmsim::plot {

using Colour = std::uint32_t;  // 0xrrggbb

// Hatched fills are lines of the colour on white: more kinds than there are colours to tell apart.
enum class Fill : std::uint8_t { solid, rising, falling, crossed };

}  // namespace mllmsim::plot

template <>
struct mllmsim::Names<mllmsim::plot::Fill> {
  static constexpr std::array<std::string_view, 4> list{"solid", "rising", "falling", "crossed"};
};

namespace mllmsim::plot {

struct Box {
  double x0 = 0, x1 = 0, y0 = 0, y1 = 0;
  bool operator==(const Box&) const = default;
};

struct Boxes {
  std::string name;  // empty: not in the legend
  Colour colour = 0;
  Fill fill = Fill::solid;
  bool outlined = false;  // a thin white edge keeps neighbours apart
  std::vector<Box> boxes;
};

enum class SeriesStyle : std::uint8_t {
  points,
  line,   // drawn over points
  guide,  // a thin dashed grey line to compare with; takes no colour
  steps,  // a line that keeps its value up to the next x
  band,   // the pale area between y_low and y, behind everything
  area,   // the same, opaque: parts of a stack
};
constexpr bool has_low(SeriesStyle style) {
  return style == SeriesStyle::band || style == SeriesStyle::area;
}

struct Series {
  std::string name;  // empty: not in the legend
  std::vector<double> x, y;
  SeriesStyle style = SeriesStyle::line;
  std::vector<double> y_low{};  // of a band or an area
  std::optional<Colour> colour{};
};

enum class Anchor : std::uint8_t { left, centre, right };

// On a box that stays as light as it is on a dark page.
inline constexpr Colour kInkOnBox = 0x101010;

struct Text {
  double x = 0, y = 0;
  std::string text;
  Anchor anchor = Anchor::centre;
  Colour colour = 0;
};

struct Range {
  double low = 0, high = 1;
  bool operator==(const Range&) const = default;
};

// A named place on an axis.
struct Tick {
  double at = 0;
  std::string text;
};

struct XAxis {
  std::string label;
  bool log = false;
  Range range;
  std::vector<Tick> ticks{};  // instead of numbers
};

struct Panel {
  std::string title, y_label;  // labels with units; lines end with \n
  bool log_y = false;
  std::optional<Range> y_range{};  // otherwise what is drawn
  std::vector<Tick> y_ticks{};     // instead of numbers
  std::optional<XAxis> own_x{};    // instead of the chart's
  double height = 1;               // relative to the other panels; that of its row is the largest
  std::vector<Boxes> boxes{};
  std::vector<Series> series{};  // one without points appears in the legend only
  std::vector<Text> texts{};     // small
};

struct Chart {
  std::string title, x_label;
  bool log_x = false;
  std::optional<Range> x_range{};
  std::vector<Tick> x_ticks{};
  std::vector<Panel> panels{1};
  std::size_t columns = 1;  // panels fill rows from left to right
  int width_px = 1200, height_px = 800;

  Panel& panel() { return panels.front(); }  // of a chart that has one
  const Panel& panel() const { return panels.front(); }
};

// Writes .svg, .png or .pdf by the file's extension, whole or not at all. Another extension is a
// UserError; an EnvironmentError says if gnuplot is missing or failed, or the file cannot be
// written.
void save(const Chart& chart, const std::filesystem::path& file);

// The same as text, for a page that contains the picture.
std::string to_svg(const Chart& chart);

// All that is drawn, one row per box, point or text: panel,kind,name,x,y,x_end,y_end.
std::string to_csv(const Chart& chart);

}  // namespace mllmsim::plot
