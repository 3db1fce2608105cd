// mllmsim: sub-commands, and what each kind of failure means to the shell.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <iostream>

#include "results/cli/command.hpp"
#include "results/run/version.hpp"
#include "scenarios/parquet/parquet_lengths.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "simulate scenarios and write their results", run_command},
    {"sweep", "simulate every combination of values, on all cores, resumably", sweep_command},
    {"merge", "join the shards of a sweep", merge_command},
    {"compare", "runs and sweeps beside each other, with speed-ups", compare_command},
    {"explain", "where a step's time goes, and what would help", explain_command},
    {"validate", "predict runs that others measured, and say how far off", validate_command},
    {"calibrate", "fit, import, show and scale calibrations", calibrate_command},
    {"pack", "pack a data set into sequences of equal size (ISF, best fit)", pack_command},
    {"plot", "draw timelines, bubbles, memory, sweeps and more", plot_command},
    {"trace", "write a run's timeline for Perfetto and PyTorch trace tools", trace_command},
    {"report", "write one HTML page about some runs", report_command},
    {"list", "show strategies and the shipped models, clusters and runs", list_command},
};

void print_help() {
  std::cout << "mllmsim " << results::version()
            << ": simulates training of multimodal LLMs on GPU clusters\n\n"
            << "usage: mllmsim COMMAND [arguments]      mllmsim COMMAND --help\n\n";
  for (const Command& c : kCommands)
    std::cout << fmt::format("  {:<10} {}\n", c.name, c.description);
  std::cout << "\nexit codes: 0 done, 2 wrong input, 3 the machine (disk, missing program)\n";
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help")
    return print_help(), 0;
  if (arguments[0] == "--version") return std::cout << "mllmsim " << results::version() << "\n", 0;
  for (const Command& c : kCommands)
    if (arguments[0] == c.name) return c.run({arguments.begin() + 1, arguments.end()});
  throw UserError("command line", arguments[0], "no such command; `mllmsim --help` lists them");
}

}  // namespace
}  // namespace mllmsim::cli

int main(int argc, char** argv) {
  // Every simulated step takes and frees tens of megabytes: keep the pages.
  constexpr int kKept = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mllmsim::scenarios::register_parquet_lengths();
  try {
    return mllmsim::cli::dispatch({argv + 1, argv + argc});
  } catch (const mllmsim::UserError& e) {
    for (const mllmsim::Problem& p : e.problems()) std::cerr << "error: " << p.text() << "\n";
    return 2;
  } catch (const mllmsim::EnvironmentError& e) {
    std::cerr << "error: " << e.what() << "\n";
    return 3;
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
    return 3;
  } catch (const std::exception& e) {
    std::cerr << "internal error: " << e.what() << "\nPlease report this with the scenario.\n";
    std::abort();
  }
}
