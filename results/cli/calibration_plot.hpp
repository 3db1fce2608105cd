// The options and the picture of measured against predicted kernel times, for `calibrate show
// --plot` and `plot calibration`.
#pragma once

#include <boost/program_options.hpp>
#include <string>

#include "results/plot/chart.hpp"

namespace mllmsim::cli {

void add_calibration_options(boost::program_options::options_description& options);

// UserError without --raw: a calibration does not keep its measurements.
plot::Chart draw_calibration(const std::string& file,
                             const boost::program_options::variables_map& values);

}  // namespace mllmsim::cli
