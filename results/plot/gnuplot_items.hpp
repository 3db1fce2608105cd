// What a panel shows, in gnuplot's language: boxes, series and texts. Both backends use it; axes,
// titles and pages are theirs.
#pragma once

#include <string>
#include <vector>

#include "results/plot/backend.hpp"
#include "results/plot/layout.hpp"

namespace mllmsim::plot {

struct GnuplotItems {
  std::string before;             // data blocks and labels
  std::vector<std::string> plot;  // elements of a plot command
};

// `number` tells the panels of a page apart.
GnuplotItems gnuplot_items(const Placed& panel, std::size_t number, PictureFormat format);

// A double-quoted string. In these gnuplot runs `commands`, and has no escape for the mark itself;
// in SVG it leaves references such as &#0; and the end of a CDATA section as they are.
std::string quoted(const std::string& text, PictureFormat format);

// What a font of so many pixels is called by a terminal: cairo's count points.
double font_size(int px, PictureFormat format);

}  // namespace mllmsim::plot
