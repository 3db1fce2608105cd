// mllmsim report RUNS... --out report.html: one page about some runs, or about a sweep.
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/report/report.hpp"
#include "results/report/sweep_page.hpp"
#include "results/run/run_tables.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kReportUsage =
    "usage: mllmsim report RUN... [options]\n"
    "       mllmsim report SWEEP [options]\n\n"
    "Writes one HTML file that needs nothing else. Of runs: what wins and why, an\n"
    "interactive timeline, pictures, the plan, the assumptions and how to reproduce. Of a\n"
    "sweep: a heat map, the frontier of GPU-days and time, a table that sorts and filters,\n"
    "the figures of the point one clicks on. RUN and SWEEP are directories that `mllmsim\n"
    "run` and `mllmsim sweep` left.\n";

// Of a sweep or of runs.
std::string page_of(const Arguments& directories, std::optional<double> price,
                    std::vector<std::string>& notes) {
  std::vector<report::ReportRun> runs;
  for (const std::string& directory : directories) {
    const tables::ParquetFile file = tables::read_parquet(results::runs_file(directory));
    if (report::is_sweep(file)) {
      if (directories.size() > 1)
        throw UserError("command line", directory,
                        "a sweep has a page of its own: report it without other runs");
      return report::sweep_to_html(file, directory, price);
    }
    const auto version = file.metadata.find("version");
    runs.push_back({results::read_run(directory), directory,
                    version == file.metadata.end() ? "?" : version->second});
  }
  return report::to_html(runs, price, notes);
}

}  // namespace

int report_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>()->default_value("report.html"),
                        "file to write");
  add_price_option(options);
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kReportUsage, options, values, words)) return 0;
  if (words.empty())
    throw UserError("command line", "", "report needs at least one RUN, or a SWEEP");
  std::vector<std::string> notes;
  const std::string page = page_of(words, price_of(values), notes);
  const std::string out = values["out"].as<std::string>();
  write_file_atomically(out, page);
  for (const std::string& note : notes) say("without pictures: " + note);
  say("wrote " + out);
  return 0;
}

}  // namespace mllmsim::cli
