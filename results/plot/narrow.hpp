// Charts for the narrow page of a phone.
#pragma once

#include "results/plot/chart.hpp"

namespace mllmsim::plot {

inline constexpr int kNarrowPx = 480;

// The same panels one below the other, titles in lines that fit, fewer named ticks, and no texts
// where they would meet.
Chart narrow(Chart chart);

}  // namespace mllmsim::plot
