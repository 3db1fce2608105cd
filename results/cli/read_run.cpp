#include "results/cli/read_run.hpp"

#include <filesystem>
#include <memory>

#include "results/run/run_tables.hpp"
#include "scenarios/files/input_files.hpp"
#include "sim/base/errors.hpp"

namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ReadRun read_scenario_of(const std::string& file, const std::vector<std::string>& overrides) {
  return
      [=, files = std::make_shared<scenarios::InputFiles>()](const std::vector<std::string>& more) {
        return scenarios::read_scenario(file, joined(overrides, more), files.get());
      };
}

ReadRun read_result(const fs::path& directory, const std::vector<std::string>& overrides) {
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

ReadRun read_run(const std::string& word, const std::vector<std::string>& overrides) {
  std::error_code error;
  return fs::is_directory(word, error) ? read_result(word, overrides)
                                       : read_scenario_of(word, overrides);
}

}  // namespace mllmsim::cli
