// How well a calibration fits measurements: predicted over measured time of each kernel, a panel
// per part, with a band of 10 %.
//
// GEMM bursts are compared before the factor of sustained load, as the fit does. Serving attention
// is left out: the fit drops what it knows of their paged cache (fit/raw_data.hpp). Titles
// count points and say what is left out.
#pragma once

#include "cost_models/fit/fit.hpp"
#include "results/plot/chart.hpp"

namespace mllmsim::charts {

// `network`: where what crosses nodes was measured. UserError if there is nothing to draw.
plot::Chart calibration_chart(const costs::Calibration& calibration, const fit::RawData& raw,
                              const fit::MeasuredNetwork& network);

}  // namespace mllmsim::charts
