// Runs gnuplot without a shell, a pipe or a path: the script, the picture and the complaints are
// unnamed temporary files. So nothing in a script can reach a shell through its name, no SIGPIPE
// ends us if gnuplot dies, and a failure leaves nothing behind.
#pragma once

#include <string>

namespace mllmsim::plot {

// What gnuplot writes to its output. Throws EnvironmentError with its complaint if it fails, and
// with what to install if there is none.
std::string run_gnuplot(const std::string& script);

}  // namespace mllmsim::plot
