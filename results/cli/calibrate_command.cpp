// mllmsim calibrate fit | import | show | scale | gaps. All are in cost_models but gaps, which
// needs a scenario, and the plot of show.
#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "cost_models/fit/calibrate_command.hpp"
#include "cost_models/kernels/names.hpp"
#include "results/analysis/gaps.hpp"
#include "results/cli/calibration_plot.hpp"
#include "results/cli/command.hpp"
#include "results/cli/read_run.hpp"
#include "results/cli/streams.hpp"
#include "results/text/summary.hpp"
#include "results/text/text_table.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kGapsUsage =
    "usage: mllmsim calibrate gaps RUN... [key=value ...] [options]\n\n"
    "Lists the kernels of runs (scenario files, names of shipped ones, or directories that\n"
    "`mllmsim run` wrote) that rest on no measurement of their machine, those that matter\n"
    "most first. --out writes them as the to-do list of the measuring program:\n"
    "mllmsim-calibrate --shapes FILE.\n";

constexpr const char* kShowUsage =
    "usage: mllmsim calibrate show FILE|NAME [--raw RAW ... --plot OUT]\n\n"
    "Lists every part of a calibration (a file, or a shipped one by name) with its source, points "
    "and errors on held-out points; then the measurements that would replace most of the time\n"
    "that is estimated in the shipped runs on that machine.\n"
    "--plot draws what it predicts over raw measurements (JSON lines or CSV).\n";

constexpr std::size_t kMostGaps = 1'000'000;

// A plan that is made at once, and without a pass: its kernels are the same whoever plans.
const std::vector<std::string> kQuickPlan{"strategy.name=baseline", "vpp=1"};

// What it writes to stdout is data for `import` and `scale`, text for the others.
int run_in_cost_models(const Arguments& arguments) {
  std::ostringstream out, talk;
  const int code = fit::run_calibrate(arguments, out, talk);
  std::string said = talk.str();
  if (said.ends_with('\n')) said.pop_back();
  if (!said.empty()) say(said);
  const bool data = !arguments.empty() && (arguments[0] == "import" || arguments[0] == "scale");
  data ? print_data(out.str()) : print_text(out.str());
  return code;
}

int gaps_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(), "write the shapes as JSON lines")(
      "all", "all kernels of the run, measured ones too")(
      "top", po::value<std::string>(), "only the largest (default: 20 printed, all written)");
  po::variables_map values;
  std::vector<std::string> words, runs, overrides;
  if (!parse(arguments, fmt::format("{}{}", kGapsUsage, kShortForms), options, values, words))
    return 0;
  for (const std::string& word : words) (is_override(word) ? overrides : runs).push_back(word);
  if (runs.empty()) throw UserError("command line", "", "gaps needs a run");
  std::vector<scenarios::Scenario> scenarios;
  for (const std::string& run : runs) scenarios.push_back(read_run(run, overrides)({}));
  analysis::GapsAsked asked;
  asked.all = values.count("all") > 0;
  if (const auto top = count_of(values, "top", kMostGaps)) asked.most = *top;
  const analysis::Gaps found = analysis::gaps_of(scenarios, asked);

  results::TextTable table({{"kernel", results::Align::left, true},
                            {"source", results::Align::left},
                            {"share of kernel time"}});
  constexpr std::size_t kPrinted = 20;
  double listed = 0;
  for (std::size_t i = 0; i < found.gaps.size(); ++i) {
    const analysis::Gap& gap = found.gaps[i];
    listed += gap.share;
    if (i < kPrinted || values.count("top"))
      table.add_row(
          {gap.kernel, std::string(name_of(gap.source)), fmt::format("{:.1f}%", 100 * gap.share)});
  }
  constexpr std::size_t kWidth = 100;
  if (values.count("out")) {
    const std::string out = values["out"].as<std::string>();
    write_file_atomically(out, fit::to_shape_lines(found.shapes));
    say("wrote " + out);
  }
  print_text(table.text(0, kWidth) + fmt::format("{} kernels, {:.1f}% of the kernel time\n",
                                                 found.gaps.size(), 100 * listed));
  return 0;
}

// The shipped runs that use a calibration.
std::vector<std::string> runs_on(const std::string& calibration) {
  std::vector<std::string> out;
  std::error_code error;
  for (const scenarios::ShippedFile& file : scenarios::shipped_runs()) {
    const scenarios::Scenario run = scenarios::read_scenario(file.name, kQuickPlan);
    if (!run.calibration.empty() &&
        std::filesystem::equivalent(run.calibration, calibration, error))
      out.push_back(file.name);
  }
  return out;
}

// Which few measurements would replace most of what is estimated, and how to make them.
std::string measure_first(const std::string& calibration) {
  const std::vector<std::string> runs = runs_on(calibration);
  if (runs.empty())
    return "\nno shipped run uses it: `mllmsim calibrate gaps RUN` says what to measure first\n";
  std::vector<scenarios::Scenario> scenarios;
  for (const std::string& run : runs)
    scenarios.push_back(scenarios::read_scenario(run, kQuickPlan));
  const std::vector<analysis::Gap> gaps =
      analysis::gaps_of(scenarios, {.most = analysis::kMeasuredFirst}).gaps;
  if (gaps.empty()) return "";
  std::vector<std::string> words = runs;
  words.insert(words.end(), kQuickPlan.begin(), kQuickPlan.end());
  return "\nin the shipped runs on it\n" +
         results::measure_first(gaps, analysis::measure_command(words));
}

int show_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("plot", po::value<std::string>(), "draw a .svg, .png or .pdf file");
  add_calibration_options(options);
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kShowUsage, options, values, words)) return 0;
  for (std::string& word : words)
    word = scenarios::existing(word, scenarios::ShippedKind::calibration).string();
  if (values.count("plot") != values.count("raw"))
    throw UserError("command line", "",
                    "a calibration does not keep its measurements: a plot needs both --plot OUT "
                    "and --raw RAW");
  if (values.count("plot")) {
    if (words.size() != 1) throw UserError("command line", "", "expected one calibration to plot");
    const std::string out = values["plot"].as<std::string>();
    plot::save(draw_calibration(words.front(), values), out);
    say("wrote " + out);
  }
  const Arguments calibrations = words;
  words.insert(words.begin(), "show");
  const int code = run_in_cost_models(words);
  if (code == 0)
    for (const std::string& calibration : calibrations) print_text(measure_first(calibration));
  return code;
}

}  // namespace

int calibrate_command(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "gaps")
    return gaps_command({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "show")
    return show_command({arguments.begin() + 1, arguments.end()});
  return run_in_cost_models(arguments);
}

}  // namespace mllmsim::cli
