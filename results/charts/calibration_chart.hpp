// How well a calibration fits measurements: predicted against measured time of each kernel, with
// the diagonal and a band of 10 % around it.
//
// GEMM bursts are compared before the factor of sustained load, as the fit does. Serving attention
// is left out: the fit drops what it knows of their paged cache (fit/raw_data.hpp). The legend
// counts points and says what is left out.
#pragma once

#include "cost_models/fit/fit.hpp"
#include "results/plot/chart.hpp"

namespace mllmsim::charts {

// `network`: where what crosses nodes was measured. UserError if there is nothing to draw.
plot::Chart calibration_chart(const costs::Calibration& calibration, const fit::RawData& raw,
                              const fit::MeasuredNetwork& network);

}  // namespace mllmsim::charts
