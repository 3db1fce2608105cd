// Pictures for dark pages: an SVG that changes its paper, ink and grid where its reader prefers
// dark colours (prefers-color-scheme), and keeps the colours of what is drawn.
#pragma once

#include <string>
#include <string_view>

namespace mllmsim::plot {

// Paper and edges of boxes are white, ink is black, grid and axes are two greys (gnuplot.cpp),
// however the program that drew them spells their colours.
std::string with_dark_colours(std::string_view svg);

}  // namespace mllmsim::plot
