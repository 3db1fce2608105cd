#include "results/plot/gnuplot_items.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/base/errors.hpp"
#include "sim/base/utf8.hpp"

namespace mllmsim::plot {
namespace {

constexpr double kEdgeWidth = 0.5, kHatchWidth = 2;
constexpr std::array kMarkers{7, 5, 9, 13, 11};  // filled: circle, square, triangle, diamond, ...

std::string filling(const Boxes& b) {
  const char* edge = b.outlined ? "border linecolor rgb '#ffffff'" : "noborder";
  switch (b.fill) {
    case Fill::solid:
      return fmt::format("solid 1 {}", edge);
    case Fill::rising:
      return fmt::format("pattern 5 {}", edge);
    case Fill::falling:
      return fmt::format("pattern 4 {}", edge);
    case Fill::crossed:
      return fmt::format("pattern 1 {}", edge);
  }
  throw InternalError("unknown fill");
}

std::string look(const DrawnSeries& d) {
  switch (d.series.style) {
    case SeriesStyle::points:  // many are drawn smaller
      return fmt::format("points pointtype {} pointsize {} linecolor rgb '#{:06x}'",
                         kMarkers[d.marker % kMarkers.size()], d.series.x.size() > 300 ? 0.6 : 1.0,
                         d.colour);
    case SeriesStyle::line:
      return fmt::format("lines linewidth 1.8 linecolor rgb '#{:06x}'", d.colour);
    case SeriesStyle::steps:
      return fmt::format("steps linewidth 1.5 linecolor rgb '#{:06x}'", d.colour);
    case SeriesStyle::guide:
      return fmt::format("lines linewidth 1.2 dashtype 2 linecolor rgb '#{:06x}'", d.colour);
    case SeriesStyle::band:
      return fmt::format(
          "filledcurves fillstyle transparent solid 0.2 noborder fillcolor rgb '#{:06x}'",
          d.colour);
    case SeriesStyle::area:
      return fmt::format("filledcurves fillstyle solid 1 noborder fillcolor rgb '#{:06x}'",
                         d.colour);
  }
  throw InternalError("unknown series style");
}

const char* name(Anchor anchor) {
  return anchor == Anchor::left ? "left" : anchor == Anchor::right ? "right" : "center";
}

std::string quoted(char c, PictureFormat format) {
  const bool svg = format == PictureFormat::svg;
  switch (c) {
    case '"':
    case '\\':
      return {'\\', c};
    case '\n':
      return "\\n";
    case '`':
      return "'";
    case '&':
      return svg ? "&#38;" : "&";
    case '>':
      return svg ? "&#62;" : ">";
    default:
      return {static_cast<unsigned char>(c) < ' ' ? ' ' : c};
  }
}

}  // namespace

std::string quoted(const std::string& text, PictureFormat format) {
  std::string out = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = character_length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(1, length));
    rest.remove_prefix(character.size());
    if (length > 1)
      out += character;
    else
      out += length == 0 ? "?" : quoted(character[0], format);
  }
  return out + '"';
}

double font_size(int px, PictureFormat format) {
  return format == PictureFormat::svg ? px : px * 0.75;
}

GnuplotItems gnuplot_items(const Placed& panel, std::size_t number, PictureFormat format) {
  GnuplotItems out;
  std::size_t blocks = 0;
  const auto block = [&](const auto& rows, auto print) {
    const std::string name = fmt::format("$data{}_{}", number, blocks++);
    out.before += name + " << END\n";
    auto to = std::back_inserter(out.before);
    for (std::size_t i = 0; i < rows.size(); ++i) print(to, i);
    out.before += "END\n";
    return name;
  };
  for (const Boxes& b : panel.boxes) {
    if (b.boxes.empty()) continue;
    const std::string data = block(b.boxes, [&](auto to, std::size_t i) {
      const Box& box = b.boxes[i];
      fmt::format_to(to, "{} {} {} {}\n", box.x0, box.x1, box.y0, box.y1);
    });
    out.plot.push_back(
        fmt::format("{} using 1:3:1:2:3:4 with boxxyerror linewidth {} fillstyle {} "
                    "fillcolor rgb '#{:06x}' notitle",
                    data, b.fill == Fill::solid ? kEdgeWidth : kHatchWidth, filling(b), b.colour));
  }
  for (const DrawnSeries& d : panel.series) {
    const Series& s = d.series;
    if (s.x.empty()) continue;
    const bool band = has_low(s.style);
    const std::string data = block(s.x, [&](auto to, std::size_t i) {
      fmt::format_to(to, "{} {}", s.x[i], s.y[i]);
      if (band) fmt::format_to(to, " {}", s.y_low[i]);
      fmt::format_to(to, "\n");
    });
    out.plot.push_back(
        fmt::format("{} using {} with {} notitle", data, band ? "1:2:3" : "1:2", look(d)));
  }
  const auto label = [&](const Text& t, const char* system, int px) {
    out.before += fmt::format(
        "set label {0} at {1} {2}, {1} {3} {4} front noenhanced font ',{5}' "
        "textcolor rgb '#{6:06x}'\n",
        quoted(t.text, format), system, t.x, t.y, name(t.anchor), font_size(px, format), t.colour);
  };
  for (const Text& t : panel.texts) label(t, "first", panel.axes ? kSmallFontPx : kFontPx);
  for (const Text& t : panel.page_texts) label(t, "screen", kFontPx);
  if (out.plot.empty()) out.plot.push_back("NaN notitle");
  return out;
}

}  // namespace mllmsim::plot
