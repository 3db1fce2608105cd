// Draws with gnuplot (5.2 or newer, with the cairo terminals).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "results/plot/backend.hpp"
#include "results/plot/gnuplot_items.hpp"
#include "results/plot/layout.hpp"
#include "results/plot/run_gnuplot.hpp"

namespace mllmsim::plot {
namespace {

// The text of a tick is a format for its place on the axis.
std::string as_format(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

std::string ticks(char axis, const std::vector<Tick>& named, bool shown, PictureFormat format) {
  if (named.empty()) return shown ? "" : fmt::format("set format {} ''\n", axis);
  std::string list;
  for (const Tick& t : named)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ",
                        quoted(shown ? as_format(t.text) : "", format), t.at);
  return fmt::format("set {}tics ({}) noenhanced scale 0\n", axis, list);
}

std::string range(char axis, const std::optional<Range>& r) {
  return r ? fmt::format("set {}range [{}:{}]\n", axis, r->low, r->high) : "";
}

std::string axes(const Placed& p, PictureFormat format) {
  if (!p.axes) return "unset border\nunset tics\n";
  std::string out =
      "set grid linetype 1 linewidth 0.5 linecolor rgb '#d0d0d0'\n"
      "set border 3 linecolor rgb '#606060'\nset tics nomirror textcolor rgb '#000000'\n";
  out += fmt::format("set ylabel {} noenhanced\n", quoted(p.y_label, format));
  if (p.log_x) out += "set logscale x\nset format x '10^{%T}'\n";
  if (p.log_y) out += "set logscale y\nset format y '10^{%T}'\n";
  return out + ticks('x', p.x_ticks, p.x_labels, format) + ticks('y', p.y_ticks, true, format);
}

std::string script(const Chart& chart, PictureFormat format) {
  std::string out = terminal(chart, format) + "set multiplot\n";
  std::size_t number = 0;
  for (const Placed& p : layout(chart)) {
    out += fmt::format(
        "reset\nunset key\n"
        "set lmargin at screen {}\nset rmargin at screen {}\n"
        "set bmargin at screen {}\nset tmargin at screen {}\n",
        p.left, p.right, p.bottom, p.top);
    const GnuplotItems items = gnuplot_items(p, number++, format);
    out += axes(p, format) + range('x', p.x_range) + range('y', p.y_range) + items.before;
    out += fmt::format("plot {}\n", fmt::join(items.plot, ", "));
  }
  return out + "unset multiplot\n";
}

}  // namespace

std::string render(const Chart& chart, PictureFormat format) {
  return run_gnuplot(script(chart, format));
}

}  // namespace mllmsim::plot
