#include "results/plot/chart.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string_view>

#include "results/plot/backend.hpp"
#include "results/plot/dark_svg.hpp"
#include "results/plot/layout.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::plot {
namespace {

PictureFormat format_of(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  if (!extension.empty()) extension.erase(0, 1);  // the dot
  if (const auto format = named<PictureFormat>(extension)) return *format;
  throw UserError(file.string(), "", "expected a file name that ends in .svg, .png or .pdf");
}

// Charts leave out what a logarithm does not take; that a table has no number is the table's fault.
void check_value(double v, bool log) {
  if (!std::isfinite(v))
    throw UserError("", "", "cannot be drawn: a value of the table is infinite or not a number");
  check(!log || v > 0, "a chart's values fit its axes");
}

void check_chart(const Chart& chart) {
  check(!chart.panels.empty(), "a chart has a panel");
  for (const Panel& panel : chart.panels) {
    const bool log_x = panel.own_x ? panel.own_x->log : chart.log_x;
    for (const Series& s : panel.series) {
      check(s.x.size() == s.y.size(), "a series has as many x as y");
      check(!has_low(s.style) || s.y.size() == s.y_low.size(), "a band has two y for each x");
      for (const double v : s.x) check_value(v, log_x);
      for (const double v : s.y) check_value(v, panel.log_y);
      for (const double v : s.y_low) check_value(v, panel.log_y);
    }
    for (const Boxes& group : panel.boxes)
      for (const Box& b : group.boxes) {
        for (const double v : {b.x0, b.x1}) check_value(v, log_x);
        for (const double v : {b.y0, b.y1}) check_value(v, panel.log_y);
      }
  }
}

// The drawing library writes when a PDF was made, but the same chart shall give the same bytes.
void forget_creation_date(std::string& pdf) {
  constexpr std::string_view kKey = "/CreationDate (D:", kEpoch = "19700101000000";
  const auto at = pdf.find(kKey);
  if (at == std::string::npos || at + kKey.size() + kEpoch.size() > pdf.size()) return;
  pdf.replace(at + kKey.size(), kEpoch.size(), kEpoch);
}

std::string draw(const Chart& chart, PictureFormat format) {
  check_chart(chart);
  std::string picture = render(chart, format);
  if (picture.empty()) throw EnvironmentError("gnuplot drew nothing");
  if (format == PictureFormat::pdf) forget_creation_date(picture);
  if (format == PictureFormat::svg) picture = with_dark_colours(picture);
  return picture;
}

}  // namespace

std::string terminal(const Chart& chart, PictureFormat format) {
  constexpr double kPixelsPerInch = 96, kPointsPerPixel = 0.75;
  const int w = chart.width_px, h = chart.height_px;
  const auto with = [](const std::string& kind) {
    return fmt::format("set encoding utf8\nset terminal {}\n", kind);
  };
  const double points = kFontPx * kPointsPerPixel;
  switch (format) {
    case PictureFormat::svg:
      return with(fmt::format("svg size {},{} font 'Sans,{}' background 'white'", w, h, kFontPx));
    case PictureFormat::png:
      return with(fmt::format("pngcairo size {},{} font 'Sans,{}'", w, h, points));
    case PictureFormat::pdf:
      return with(fmt::format("pdfcairo size {}in,{}in font 'Sans,{}' fontscale 1",
                              w / kPixelsPerInch, h / kPixelsPerInch, points));
  }
  throw InternalError("unknown picture format");
}

void save(const Chart& chart, const std::filesystem::path& file) {
  write_file_atomically(file, draw(chart, format_of(file)));
}

std::string to_svg(const Chart& chart) { return draw(chart, PictureFormat::svg); }

std::string to_csv(const Chart& chart) {
  std::string out = "panel,kind,name,x,y,x_end,y_end\n";
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const Panel& panel = chart.panels[p];
    const std::string title = csv_field(panel.title.empty() ? std::to_string(p) : panel.title);
    const auto row = [&](const char* kind, const std::string& name, double x, double y,
                         const std::string& ends) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{}\n", title, kind, csv_field(name),
                     x, y, ends);
    };
    for (const Boxes& group : panel.boxes)
      for (const Box& b : group.boxes)
        row("box", group.name, b.x0, b.y0, fmt::format("{},{}", b.x1, b.y1));
    for (const Series& s : panel.series)
      for (std::size_t i = 0; i < s.x.size(); ++i)
        row("point", s.name, s.x[i], s.y[i],
            s.y_low.empty() ? "," : fmt::format("{},{}", s.x[i], s.y_low[i]));
    for (const Text& t : panel.texts) row("text", t.text, t.x, t.y, ",");
  }
  return out;
}

}  // namespace mllmsim::plot
