// mllmsim explain RUN: where the step's time goes and what would help.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "results/analysis/explain.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/run_tables.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/errors.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kUsage =
    "usage: mllmsim explain RUN [key=value ...] [--json]\n\n"
    "RUN is a scenario (a path, or the name of a shipped run) or a directory that `mllmsim run`\n"
    "wrote; a directory's scenario is simulated again. Shows the critical path of a step by kind\n"
    "and stage, imbalances, and what remedies would gain, each simulated.\n";

using Read = std::function<scenarios::Scenario(const std::vector<std::string>&)>;

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Read read_file(const std::string& file, const std::vector<std::string>& overrides) {
  return
      [=, files = std::make_shared<scenarios::InputFiles>()](const std::vector<std::string>& more) {
        return scenarios::read_scenario(file, joined(overrides, more), files.get());
      };
}

Read read_result(const fs::path& directory, const std::vector<std::string>& overrides) {
  std::error_code error;
  if (!fs::exists(directory / "runs.parquet", error))
    throw UserError(directory.string(), "", "has no runs.parquet: no run wrote it");
  const results::RunRows rows = results::read_runs(directory / "runs.parquet");
  const auto scenario = rows.metadata.find("scenario");
  if (rows.runs.size() != 1 || scenario == rows.metadata.end())
    throw UserError(directory.string(), "",
                    "is not the result of one run; name a point's scenario and its overrides");
  return [=, text = scenario->second, name = rows.runs.front().name,
          files = std::make_shared<scenarios::InputFiles>()](const std::vector<std::string>& more) {
    return scenarios::read_scenario_text(text, name, joined(overrides, more), files.get());
  };
}

}  // namespace

int explain_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print JSON");
  po::variables_map values;
  std::vector<std::string> words, runs, overrides;
  if (!parse(arguments, kUsage, options, values, words)) return 0;
  for (const std::string& word : words) (is_override(word) ? overrides : runs).push_back(word);
  if (runs.size() != 1)
    throw UserError("command line", "",
                    fmt::format("explain needs one run, found {}", runs.size()));
  std::error_code error;
  const bool directory = fs::is_directory(runs.front(), error);
  const analysis::Explanation e = analysis::explain(directory ? read_result(runs.front(), overrides)
                                                              : read_file(runs.front(), overrides));
  if (values.count("json"))
    print_data(analysis::explanation_json(e));
  else
    print_text(analysis::explanation_text(e));
  return 0;
}

}  // namespace mllmsim::cli
