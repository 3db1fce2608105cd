// What a backend does: turn a chart into the bytes of a picture. One of gnuplot.cpp and matplot.cpp
// is built.
#pragma once

#include <string>

#include "results/plot/chart.hpp"

namespace mllmsim::plot {

enum class PictureFormat : std::uint8_t { svg, png, pdf };

}  // namespace mllmsim::plot

template <>
struct mllmsim::Names<mllmsim::plot::PictureFormat> {
  static constexpr std::array<std::string_view, 3> list{"svg", "png", "pdf"};
};

namespace mllmsim::plot {

// Throws EnvironmentError with a reason if there is no picture.
std::string render(const Chart& chart, PictureFormat format);

// The first lines of a gnuplot script: format, size and font.
std::string terminal(const Chart& chart, PictureFormat format);

}  // namespace mllmsim::plot
