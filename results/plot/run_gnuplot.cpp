#include "results/plot/run_gnuplot.hpp"

#include <fmt/format.h>

#include "sim/base/process.hpp"

namespace mllmsim::plot {

std::string run_gnuplot(const std::string& script) {
  try {
    // -d: not what ~/.gnuplot says.
    const ProcessEnd end = run_process({"gnuplot", "-d"}, script);
    if (end.signal != 0)
      throw EnvironmentError(fmt::format("gnuplot was ended by signal {}", end.signal));
    if (!end.ok()) throw EnvironmentError(fmt::format("gnuplot failed: {}", end.err));
    return end.out;
  } catch (const ProgramNotFound&) {
    throw EnvironmentError(
        "plots need gnuplot, which is not on the PATH: install it, "
        "for example with apt-get install gnuplot-nox");
  }
}

}  // namespace mllmsim::plot
