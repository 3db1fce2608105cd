// mllmsim compare RUNS...: results beside each other, with speed-ups over a baseline.
#include "results/analysis/compare.hpp"
#include "results/analysis/compare_trace.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/run_tables.hpp"
#include "results/text/json.hpp"
#include "results/trace/measured_trace.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"
#include "sim/tables/csv.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kCompareUsage =
    "usage: mllmsim compare RUNS... [--baseline NAME] [--by KEY] [options]\n"
    "       mllmsim compare RUN --trace FILE... [--json]\n\n"
    "RUNS are directories that run, sweep or merge wrote. Speed-up is the baseline's\n"
    "GPU-days over the run's for the same samples, between runs of the same model, data and\n"
    "samples only. With --by strategy (or a key that a sweep varies) runs are compared with\n"
    "those that differ from them in nothing else, and a summary follows. With --trace one\n"
    "run is put beside a step that was really trained: traces of PyTorch's profiler, one\n"
    "per rank or one for all, with the actions of torch.distributed.pipelining (PP:0F1).\n";

constexpr std::size_t kCompareWidth = 120;

bool is_strategy_of(const std::string& name, const std::vector<analysis::ComparedRun>& runs) {
  for (const analysis::ComparedRun& run : runs)
    if (run.label == name || run.run.name == name) return false;
  for (const analysis::ComparedRun& run : runs)
    if (run.run.strategy == name) return true;
  return false;
}

}  // namespace

int compare_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("baseline,b", po::value<std::string>()->default_value(""),
                        "what speed-ups are over: a run, a strategy, or a value of the --by key")(
      "by", po::value<std::string>()->default_value(""),
      "compare only runs that differ in this key alone; a strategy as baseline implies strategy")(
      "trace", po::value<std::vector<std::string>>()->multitoken(),
      "traces of a real step of the run, Chrome's JSON")("json", "print JSON")("csv", "print CSV")(
      "markdown", "print a Markdown table");
  add_price_option(options);
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, kCompareUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "compare needs directories of results");
  if (values.count("json") + values.count("csv") + values.count("markdown") > 1)
    throw UserError("command line", "", "give one of --json, --csv and --markdown");
  if (values.count("trace")) {
    if (words.size() != 1 || values.count("csv") + values.count("markdown") > 0)
      throw UserError("command line", "--trace", "expected one RUN, and no format but --json");
    const auto& files = values["trace"].as<std::vector<std::string>>();
    const results::RunResult run = results::read_run(words.front());
    const analysis::TraceComparison beside =
        analysis::compare_trace(run, results::read_trace({files.begin(), files.end()}, run));
    if (values.count("json"))
      print_data(analysis::trace_json(beside));
    else
      print_text(analysis::trace_text(beside));
    return 0;
  }
  const std::optional<double> price = price_of(values);
  const std::vector<std::filesystem::path> paths(words.begin(), words.end());
  std::vector<analysis::ComparedRun> runs = analysis::read_compared(paths);
  const auto& baseline = values["baseline"].as<std::string>();
  std::string by = values["by"].as<std::string>();
  if (by.empty() && is_strategy_of(baseline, runs)) by = "strategy";
  runs = analysis::compared(std::move(runs), baseline, by);
  if (values.count("json"))
    print_data(results::to_json(analysis::comparison_table(runs, price), "runs"));
  else if (values.count("csv"))
    print_data(tables::to_csv(analysis::comparison_table(runs, price)));
  else if (values.count("markdown"))
    print_text(analysis::comparison_text(runs, price).markdown() +
               (by.empty() ? "" : "\n" + analysis::summary_by(runs, by).markdown()));
  else
    print_text(analysis::comparison_text(runs, price).text(0, kCompareWidth) +
               analysis::comparison_note(runs) +
               (by.empty() ? "" : "\n" + analysis::summary_by(runs, by).text(0, kCompareWidth)));
  if (values.count("json") + values.count("csv") + values.count("markdown") > 0)
    if (const std::string note = analysis::comparison_note(runs); !note.empty()) say(trimmed(note));
  return 0;
}

}  // namespace mllmsim::cli
