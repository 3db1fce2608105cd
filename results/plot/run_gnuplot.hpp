// Runs gnuplot on a script; run_process() keeps what is in the script away from any shell.
#pragma once

#include <string>

namespace mllmsim::plot {

// What gnuplot writes to its output. Throws EnvironmentError with its complaint if it fails, and
// with what to install if there is none.
std::string run_gnuplot(const std::string& script);

}  // namespace mllmsim::plot
