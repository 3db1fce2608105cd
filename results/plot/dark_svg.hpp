// Pictures for dark pages: an SVG that changes its paper, ink and grid where its reader prefers
// dark colours (prefers-color-scheme), and keeps the colours of what is drawn.
#pragma once

#include <string>

namespace mllmsim::plot {

// `svg` as gnuplot writes it. Colours are found by their text: paper and edges of boxes white, ink
// black, grid and axes two greys (gnuplot.cpp).
std::string with_dark_colours(std::string svg);

}  // namespace mllmsim::plot
