// What a backend does: turn a chart into the bytes of a picture. One of gnuplot.cpp and matplot.cpp
// is built.
#pragma once

#include <string>
#include <vector>

#include "results/plot/chart.hpp"

namespace mllmsim {

enum class PictureFormat : std::uint8_t { svg, png, pdf };

// Throws EnvironmentError with a reason if there is no picture.
std::string render(const Chart& chart, PictureFormat format);

struct DrawnSeries {
  const Series* series = nullptr;
  std::uint32_t colour = 0;  // 0xrrggbb
  std::size_t marker = 0;    // a number for its kind of marker
};
// Points first, then what is drawn over them; otherwise in the order of the chart.
std::vector<DrawnSeries> in_drawing_order(const Chart& chart);

// The first lines of a gnuplot script: format, size and font.
std::string terminal(const Chart& chart, PictureFormat format);

}  // namespace mllmsim
