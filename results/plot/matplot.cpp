// Draws with Matplot++, which writes gnuplot commands.
//
// Left to itself it pipes them to a shell's gnuplot, dies of SIGPIPE if there is none, and says all
// is well if it failed. So a backend of ours collects the commands, and run_gnuplot runs them. Its
// objects hold one box or line each; ours holds what a whole panel shows.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <matplot/backend/backend_interface.h>
#include <matplot/matplot.h>

#include <string_view>

#include "results/plot/backend.hpp"
#include "results/plot/gnuplot_items.hpp"
#include "results/plot/layout.hpp"
#include "results/plot/run_gnuplot.hpp"

namespace mllmsim::plot {
namespace {

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
    // We choose the terminal; the margins say where axes are, and the next two only clip titles.
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

// All that a panel shows, as one object of its axes.
class Items : public matplot::axes_object {
 public:
  Items(matplot::axes_type* axes, GnuplotItems items)
      : matplot::axes_object(axes), items_(std::move(items)) {}
  std::string set_variables_string() override { return items_.before; }
  std::string plot_string() override { return fmt::format("{}", fmt::join(items_.plot, ", ")); }
  std::string legend_string(std::string_view) override { return ""; }
  std::string data_string() override { return ""; }
  std::string unset_variables_string() override { return ""; }
  enum axes_category axes_category() override { return axes_category::two_dimensional; }

 private:
  GnuplotItems items_;
};

void style_axis(matplot::axis_type& axis, bool log, const std::optional<Range>& range,
                const std::vector<Tick>& named, bool labels) {
  axis.label_font_size(kFontPx);
  if (log) axis.scale(matplot::axis_type::axis_scale::log);
  if (range) axis.limits({range->low, range->high});
  if (log) axis.tick_label_format("10^{%T}");
  if (!labels) axis.tick_label_format("");
  if (named.empty()) return;
  std::vector<double> at;
  std::vector<std::string> texts;
  for (const Tick& t : named) {
    at.push_back(t.at);
    texts.push_back(labels ? plain(t.text) : "");
  }
  axis.tick_values(at);
  axis.ticklabels(texts);
}

void add_axes(const Placed& p, std::size_t number, PictureFormat format,
              matplot::figure_type& figure) {
  const auto share = [](double v) { return static_cast<float>(v); };
  const matplot::axes_handle axes = figure.add_axes(
      {share(p.left), share(p.bottom), share(p.right - p.left), share(p.top - p.bottom)});
  axes->font("Sans");
  axes->font_size(static_cast<float>(font_size(kFontPx, format)));
  axes->ylabel(plain(p.y_label));
  axes->grid(p.axes);
  axes->box(false);
  style_axis(axes->x_axis(), p.log_x, p.x_range, p.x_ticks, p.x_labels);
  style_axis(axes->y_axis(), p.log_y, p.y_range, p.y_ticks, true);
  axes->x_axis().visible(p.axes);
  axes->y_axis().visible(p.axes);
  axes->children({std::make_shared<Items>(axes.get(), gnuplot_items(p, number, format))});
}

}  // namespace

std::string render(const Chart& chart, PictureFormat format) {
  run_gnuplot("");  // Matplot++ asks it for its version through a shell: better we complain first
  const auto collector = std::make_shared<Collector>();
  const auto figure = std::make_shared<matplot::figure_type>(true);
  figure->backend(collector);
  figure->color("white");
  std::size_t number = 0;
  for (const Placed& p : layout(chart)) add_axes(p, number++, format, *figure);
  figure->draw();
  return run_gnuplot(terminal(chart, format) + collector->script());
}

}  // namespace mllmsim::plot
