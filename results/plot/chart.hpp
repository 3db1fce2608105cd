// A chart as plain data, and the one function that draws it.
//
// Colours are those of Okabe and Ito, which colour-blind readers can tell apart, in the order of
// the series; the legend stands below the axes. The same chart gives the same bytes on the same
// machine. Backends (backend.hpp) are chosen when the program is built.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mllmsim {

enum class SeriesStyle : std::uint8_t {
  points,
  line,   // drawn over points
  guide,  // a thin dashed grey line to compare with; takes no colour
};

struct Series {
  std::string name;  // empty: not in the legend
  std::vector<double> x, y;
  SeriesStyle style = SeriesStyle::line;
};

struct Chart {
  std::string title, x_label, y_label;  // labels with units; lines end with \n
  bool log_x = false, log_y = false;
  std::vector<Series> series;  // one without points appears in the legend only
  int width_px = 1200, height_px = 800;
};

// Writes .svg, .png or .pdf by the file's extension, whole or not at all. Another extension is a
// UserError; an EnvironmentError says if gnuplot is missing or failed, or the file cannot be
// written.
void save(const Chart& chart, const std::filesystem::path& file);

}  // namespace mllmsim
