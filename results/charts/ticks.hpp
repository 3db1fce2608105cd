// Places on an axis with their numbers as people read them.
#pragma once

#include <string>
#include <vector>

#include "results/plot/chart.hpp"

namespace mllmsim::charts {

std::string tick_text(double value);  // "0.05", "300", "20 k"

// At round steps, so few that `most` fit.
std::vector<plot::Tick> even_ticks(plot::Range range, double most);

// On a logarithmic axis however short it is: powers of ten, 1-2-5, or even steps.
std::vector<plot::Tick> log_ticks(plot::Range range);

}  // namespace mllmsim::charts
