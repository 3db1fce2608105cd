// mllmsim calibrate fit | import | show | scale | gaps. All are in cost_models but gaps, which
// needs a scenario, and the plot of show.
#include <fmt/format.h>

#include <sstream>

#include "cost_models/fit/calibrate_command.hpp"
#include "cost_models/kernels/names.hpp"
#include "results/analysis/gaps.hpp"
#include "results/cli/calibration_plot.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/text/text_table.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kGapsUsage =
    "usage: mllmsim calibrate gaps RUN [key=value ...] [options]\n\n"
    "Lists the kernels of a run (a scenario file or the name of a shipped one) that rest on no\n"
    "measurement of its machine, those that matter most first. --out writes them as the to-do "
    "list\n"
    "of the measuring program: mllmsim-calibrate --shapes FILE.\n";

constexpr const char* kShowUsage =
    "usage: mllmsim calibrate show FILE|NAME [--raw RAW ... --plot OUT]\n\n"
    "Lists every part of a calibration (a file, or a shipped one by name) with its source, points "
    "and errors on held-out points.\n"
    "--plot draws what it predicts against raw measurements (JSON lines or CSV).\n";

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
      "top", po::value<std::size_t>()->default_value(20), "rows to print");
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, kGapsUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "gaps needs a run");
  const scenarios::Scenario scenario =
      scenarios::read_scenario(words.front(), {words.begin() + 1, words.end()});
  const analysis::Gaps found = analysis::gaps_of(scenario, values.count("all") > 0);

  results::TextTable table({{"kernel", results::Align::left, true},
                            {"source", results::Align::left},
                            {"share of kernel time"}});
  double listed = 0;
  for (std::size_t i = 0; i < found.gaps.size(); ++i) {
    const analysis::Gap& gap = found.gaps[i];
    listed += gap.share;
    if (i < values["top"].as<std::size_t>())
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
  words.insert(words.begin(), "show");
  return run_in_cost_models(words);
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
