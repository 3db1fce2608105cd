// Pictures up to gnuplot's script: thousands of gnuplots would take the time of all else.
#pragma once

#include <stdlib.h>

#include "results/plot/chart.hpp"

namespace mllmsim::fuzz {

// From here on there is no program to be found.
inline void hide_gnuplot() { ::setenv("PATH", "/nonexistent", 1); }

inline void draw(const plot::Chart& chart) {
  plot::to_csv(chart);
  plot::to_svg(chart);
}

}  // namespace mllmsim::fuzz
