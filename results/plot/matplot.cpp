// Draws with Matplot++, which writes gnuplot commands.
//
// Left to itself it pipes them to a shell's gnuplot, dies of SIGPIPE if there is none, and says all
// is well if it failed. So a backend of ours collects the commands, and run_gnuplot runs them.
#include <fmt/format.h>
#include <matplot/backend/backend_interface.h>
#include <matplot/matplot.h>

#include <array>
#include <string_view>

#include "results/plot/backend.hpp"
#include "results/plot/run_gnuplot.hpp"

namespace mllmsim {
namespace {

constexpr std::array kMarkers{"o", "s", "^", "d", "v"};
constexpr std::array<float, 4> kAxes{0.1F, 0.24F, 0.86F, 0.66F};  // left, bottom, width, height
constexpr float kFontSize = 14;

class Collector : public matplot::backend::backend_interface {
 public:
  bool consumes_gnuplot_commands() override { return true; }
  bool supports_fonts() override { return true; }
  const std::string& output() override { return nowhere_; }
  const std::string& output_format() override { return terminal_; }
  bool new_frame() override { return true; }
  bool render_data() override { return true; }
  void include_comment(const std::string&) override {}
  void run_command(const std::string& command) override {
    // We choose the terminal; without the next two a legend outside the axes has the whole page.
    for (const char* unwanted : {"set terminal", "set origin", "set size"})
      if (command.find(unwanted) == command.find_first_not_of(' ')) return;
    script_ += command + "\n";
  }
  const std::string& script() const { return script_; }

 private:
  std::string nowhere_, terminal_ = "pngcairo", script_;
};

// Matplot++ puts texts in double quotes and escapes those, nothing else: not \, which could undo
// that, nor the marks of a `command`. Its gnuplot also reads {}_^@&~ as markup.
std::string plain(const std::string& text) {
  constexpr std::string_view kMarkup = "{}_^@&~";
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += R"(\\\\)";
    else if (c == '\n')
      out += R"(\n)";
    else if (c == '`')
      out += '\'';
    else if (kMarkup.find(c) != std::string_view::npos)
      out += fmt::format(R"(\\{})", c);
    else
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
}

// Its first number is how transparent it is.
matplot::color_array rgb(std::uint32_t colour) {
  const auto part = [&](int shift) { return static_cast<float>(colour >> shift & 255) / 255; };
  return {0, part(16), part(8), part(0)};
}

void add(const DrawnSeries& d, matplot::axes_type& axes) {
  const bool points = d.series->style == SeriesStyle::points;
  const bool guide = d.series->style == SeriesStyle::guide;
  const char* style = points ? kMarkers[d.marker % kMarkers.size()] : guide ? "--" : "-";
  const matplot::line_handle line = axes.plot(d.series->x, d.series->y, style);
  line->display_name(plain(d.series->name));
  if (points) {
    line->marker_size(3.6F);
    line->marker_color(rgb(d.colour));
    line->marker_face(true);
    line->marker_face_color(rgb(d.colour));
  } else {
    line->color(rgb(d.colour));
    line->line_width(guide ? 1.2F : 1.5F);
  }
}

void style_axis(matplot::axis_type& axis, bool log) {
  axis.label_font_size(kFontSize);
  if (!log) return;
  axis.scale(matplot::axis_type::axis_scale::log);
  axis.tick_label_format("10^{%T}");
}

}  // namespace

std::string render(const Chart& chart, PictureFormat format) {
  run_gnuplot("");  // Matplot++ asks it for its version through a shell: better we complain first
  const auto collector = std::make_shared<Collector>();
  const auto figure = std::make_shared<matplot::figure_type>(true);
  figure->backend(collector);
  figure->color("white");
  const matplot::axes_handle axes = figure->add_axes(kAxes);
  axes->font("Sans");
  axes->font_size(kFontSize);
  axes->title(plain(chart.title));
  axes->xlabel(plain(chart.x_label));
  axes->ylabel(plain(chart.y_label));
  axes->grid(true);
  axes->hold(true);
  style_axis(axes->x_axis(), chart.log_x);
  style_axis(axes->y_axis(), chart.log_y);
  for (const DrawnSeries& d : in_drawing_order(chart)) add(d, *axes);
  axes->legend(std::vector<std::string>{});
  const matplot::legend_handle& legend = axes->legend();
  legend->strings({});  // it made up some; display names are enough
  legend->inside(false);
  legend->location(matplot::legend::general_alignment::bottom);
  legend->horizontal(true);
  legend->box(false);
  legend->font_name("Sans");
  legend->font_size(kFontSize);
  figure->draw();
  return run_gnuplot(terminal(chart, format) + collector->script());
}

}  // namespace mllmsim
