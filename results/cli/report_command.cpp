// mllmsim report RUNS... --out report.html: one page about some runs.
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/report/report.hpp"
#include "results/run/run_tables.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kUsage =
    "usage: mllmsim report RUN... [options]\n\n"
    "Writes one HTML file that needs nothing else: summary, pictures, an interactive timeline, "
    "the\n"
    "plan, the assumptions and how to reproduce. RUN is a directory that `mllmsim run` left.\n";

report::ReportRun read(const std::string& directory) {
  const tables::Metadata metadata = tables::read_parquet(results::runs_file(directory)).metadata;
  const auto version = metadata.find("version");
  return {results::read_run(directory), directory,
          version == metadata.end() ? "?" : version->second};
}

}  // namespace

int report_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>()->default_value("report.html"),
                        "file to write");
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "report needs at least one RUN");
  std::vector<report::ReportRun> runs;
  for (const std::string& word : words) runs.push_back(read(word));
  std::vector<std::string> notes;
  const std::string page = report::to_html(runs, notes);
  const std::string out = values["out"].as<std::string>();
  write_file_atomically(out, page);
  for (const std::string& note : notes) say("without pictures: " + note);
  say("wrote " + out);
  return 0;
}

}  // namespace mllmsim::cli
