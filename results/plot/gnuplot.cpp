// Draws with gnuplot (5.2 or newer, with the cairo terminals).
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "results/plot/backend.hpp"
#include "results/plot/run_gnuplot.hpp"
#include "sim/errors.hpp"

namespace mllmsim {
namespace {

constexpr std::array kMarkers{7, 5, 9, 13, 11};  // filled: circle, square, triangle, diamond, ...

// A double-quoted string. In these gnuplot runs `commands`, and has no escape for the mark itself.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '`')
      out += '\'';
    else
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

std::string look(const DrawnSeries& d) {
  switch (d.series->style) {
    case SeriesStyle::points:
      return fmt::format("points pointtype {} pointsize 0.6 linecolor rgb '#{:06x}'",
                         kMarkers[d.marker % kMarkers.size()], d.colour);
    case SeriesStyle::line:
      return fmt::format("lines linewidth 1.5 linecolor rgb '#{:06x}'", d.colour);
    case SeriesStyle::guide:
      return fmt::format("lines linewidth 1.2 dashtype 2 linecolor rgb '#{:06x}'", d.colour);
  }
  throw InternalError("unknown series style");
}

std::string script(const Chart& chart, PictureFormat format) {
  std::string out = terminal(chart, format);
  out += fmt::format("set title {} noenhanced\n", quoted(chart.title));
  out += fmt::format("set xlabel {} noenhanced\n", quoted(chart.x_label));
  out += fmt::format("set ylabel {} noenhanced\n", quoted(chart.y_label));
  out +=
      "set key bmargin center horizontal Left reverse noenhanced samplen 2 spacing 1.3 height 1\n"
      "set grid linetype 1 linewidth 0.5 linecolor rgb '#d0d0d0'\n"
      "set tics nomirror\n";
  if (chart.log_x) out += "set logscale x\nset format x '10^{%T}'\n";
  if (chart.log_y) out += "set logscale y\nset format y '10^{%T}'\n";

  const std::vector<DrawnSeries> drawn = in_drawing_order(chart);
  std::string plot;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Series& s = *drawn[i].series;
    const std::string title = s.name.empty() ? "notitle" : "title " + quoted(s.name);
    const std::string source = s.x.empty() ? "NaN" : fmt::format("$data{} using 1:2", i);
    plot += fmt::format("{}{} with {} {}", i == 0 ? "plot " : ", ", source, look(drawn[i]), title);
    if (s.x.empty()) continue;
    out += fmt::format("$data{} << END\n", i);
    for (std::size_t p = 0; p < s.x.size(); ++p)
      fmt::format_to(std::back_inserter(out), "{} {}\n", s.x[p], s.y[p]);
    out += "END\n";
  }
  return out + plot + "\n";
}

}  // namespace

std::string render(const Chart& chart, PictureFormat format) {
  return run_gnuplot(script(chart, format));
}

}  // namespace mllmsim
