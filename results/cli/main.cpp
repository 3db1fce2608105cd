// mllmsim: sub-commands, and what each kind of failure means to the shell.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>

#include "cost_models/parquet/parquet_measurements.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/version.hpp"
#include "scenarios/energon/energon_index.hpp"
#include "scenarios/parquet/parquet_lengths.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "simulate scenarios and write their results", run_command},
    {"rerun", "repeat a run from its results and say whether anything differs", rerun_command},
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

std::string help() {
  std::string out = fmt::format(
      "mllmsim {}: simulates training of multimodal LLMs on GPU clusters\n\n"
      "usage: mllmsim COMMAND [arguments]      mllmsim COMMAND --help\n\n",
      results::version());
  for (const Command& c : kCommands) out += fmt::format("  {:<10} {}\n", c.name, c.description);
  return out +
         "\nexit codes: 0 done, 1 a rerun differs, 2 wrong input, 3 the machine (disk, missing "
         "program),\n"
         "141 the reader of the output has gone\n";
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help")
    return print_text(help()), 0;
  if (arguments[0] == "--version")
    return print_text(fmt::format("mllmsim {}\n", results::version())), 0;
  for (const Command& c : kCommands)
    if (arguments[0] == c.name) return c.run({arguments.begin() + 1, arguments.end()});
  throw UserError("command line", arguments[0], "no such command; `mllmsim --help` lists them");
}

// Each problem is one line, whatever the input has in its keys.
int wrong_input(const UserError& e) {
  for (const Problem& p : e.problems()) say("error: " + printable(p.text()));
  return 2;
}

int environment_failed(const std::string& what) {
  say("error: " + what);
  return 3;
}

int guarded_dispatch(const Arguments& arguments) {
  try {
    return dispatch(arguments);
  } catch (const UserError& e) {
    return wrong_input(e);
  } catch (const EnvironmentError& e) {
    return environment_failed(e.what());
  } catch (const std::filesystem::filesystem_error& e) {
    return environment_failed(e.what());
  } catch (const std::bad_alloc&) {
    return environment_failed("out of memory");
  } catch (const ReaderGone&) {
    return kReaderGone;
  } catch (const std::exception& e) {
    say(fmt::format("internal error: {}\nPlease report this with the scenario.", e.what()));
    std::abort();
  }
}

}  // namespace
}  // namespace mllmsim::cli

int main(int argc, char** argv) {
  mllmsim::cli::prepare_streams();
  // Every simulated step takes and frees tens of megabytes: keep the pages.
  constexpr int kKept = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mllmsim::scenarios::register_parquet_lengths();
  mllmsim::scenarios::register_energon_index();
  mllmsim::fit::register_parquet_measurements();
  return mllmsim::cli::guarded_dispatch({argv + 1, argv + argc});
}
