#include "results/plot/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "results/plot/backend.hpp"
#include "sim/atomic_file.hpp"
#include "sim/errors.hpp"

namespace mllmsim {
namespace {

// Okabe and Ito, Color Universal Design (2008); yellow last, as it is faint on white.
constexpr std::array<std::uint32_t, 8> kColours{0x000000, 0xe69f00, 0x56b4e9, 0x009e73,
                                                0x0072b2, 0xd55e00, 0xcc79a7, 0xf0e442};
constexpr std::uint32_t kGuideColour = 0x606060;

PictureFormat format_of(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".svg") return PictureFormat::svg;
  if (extension == ".png") return PictureFormat::png;
  if (extension == ".pdf") return PictureFormat::pdf;
  throw UserError(file.string(), "", "expected a file name that ends in .svg, .png or .pdf");
}

void check_values(const std::vector<double>& values, bool log) {
  for (const double v : values)
    check(std::isfinite(v) && (!log || v > 0), "a chart's values fit its axes");
}

// The drawing library writes when a PDF was made, but the same chart shall give the same bytes.
void forget_creation_date(std::string& pdf) {
  constexpr std::string_view kKey = "/CreationDate (D:", kEpoch = "19700101000000";
  const auto at = pdf.find(kKey);
  if (at == std::string::npos || at + kKey.size() + kEpoch.size() > pdf.size()) return;
  pdf.replace(at + kKey.size(), kEpoch.size(), kEpoch);
}

}  // namespace

std::vector<DrawnSeries> in_drawing_order(const Chart& chart) {
  std::vector<DrawnSeries> out;
  std::size_t coloured = 0, marked = 0;
  for (const Series& s : chart.series) {
    const bool guide = s.style == SeriesStyle::guide;
    out.push_back({&s, guide ? kGuideColour : kColours[coloured++ % kColours.size()],
                   s.style == SeriesStyle::points ? marked++ : 0});
  }
  std::stable_partition(out.begin(), out.end(), [](const DrawnSeries& d) {
    return d.series->style == SeriesStyle::points;
  });
  return out;
}

std::string terminal(const Chart& chart, PictureFormat format) {
  constexpr double kPixelsPerInch = 96;
  const int w = chart.width_px, h = chart.height_px;
  const auto with = [](const std::string& kind) {
    return fmt::format("set encoding utf8\nset terminal {}\n", kind);
  };
  switch (format) {
    case PictureFormat::svg:
      return with(fmt::format("svg size {},{} font 'Sans,18' background 'white'", w, h));
    case PictureFormat::png:
      return with(fmt::format("pngcairo size {},{} font 'Sans,14'", w, h));
    case PictureFormat::pdf:
      return with(fmt::format("pdfcairo size {}in,{}in font 'Sans,14' fontscale 1",
                              w / kPixelsPerInch, h / kPixelsPerInch));
  }
  throw InternalError("unknown picture format");
}

void save(const Chart& chart, const std::filesystem::path& file) {
  const PictureFormat format = format_of(file);
  for (const Series& s : chart.series) {
    check(s.x.size() == s.y.size(), "a series has as many x as y");
    check_values(s.x, chart.log_x);
    check_values(s.y, chart.log_y);
  }
  std::string picture = render(chart, format);
  if (picture.empty()) throw EnvironmentError("gnuplot drew nothing");
  if (format == PictureFormat::pdf) forget_creation_date(picture);
  write_file_atomically(file, picture);
}

}  // namespace mllmsim
