// mllmsim explain RUN: where the step's time goes and what would help.
#include <fmt/format.h>
#include <unistd.h>

#include "results/analysis/explain.hpp"
#include "results/cli/command.hpp"
#include "results/cli/read_run.hpp"
#include "results/cli/streams.hpp"
#include "results/cli/threads.hpp"
#include "sim/base/errors.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kExplainUsage =
    "usage: mllmsim explain RUN [key=value ...] [options]\n\n"
    "RUN is a scenario (a path, or the name of a shipped run) or a directory that `mllmsim run`\n"
    "wrote; a directory's scenario is simulated again. Shows the critical path of a step by kind\n"
    "and stage, imbalances, and what remedies would gain: recompute, micro-batch, tp, pp, vpp,\n"
    "ZeRO, packs and every other strategy, each simulated on the same data (of a pass 32 steps,\n"
    "unless data.steps says how many).\n";

}  // namespace

int explain_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print JSON");
  add_price_option(options);
  add_threads_option(options);
  po::variables_map values;
  std::vector<std::string> words, runs, overrides;
  if (!parse(arguments, fmt::format("{}{}", kExplainUsage, kShortForms), options, values, words))
    return 0;
  for (const std::string& word : words) (is_override(word) ? overrides : runs).push_back(word);
  if (runs.size() != 1)
    throw UserError("command line", "",
                    fmt::format("explain needs one run, found {}", runs.size()));
  const std::optional<double> price = price_of(values);
  const auto limit = limit_threads(values);
  const ReadRun read = read_run(runs.front(), overrides);
  Progress progress(stderr);
  const analysis::Explanation e =
      analysis::explain(read, isatty(STDERR_FILENO) ? &progress : nullptr);
  if (values.count("json"))
    print_data(analysis::explanation_json(e, price));
  else
    print_text(analysis::explanation_text(e, price));
  return 0;
}

}  // namespace mllmsim::cli
