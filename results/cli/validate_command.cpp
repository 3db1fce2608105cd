// mllmsim validate [FILES or DIRS]: simulate runs that others measured, and say how far off.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/cli/threads.hpp"
#include "results/run/version.hpp"
#include "results/validation/validation_report.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/data_directory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/progress.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kValidateUsage =
    "usage: mllmsim validate [FILE or DIR ...] [key=value ...] [options]\n\n"
    "Simulates families of runs that others measured (default: the shipped ones of\n"
    "scenarios/published) and prints predicted, published and error.\n"
    "points.csv=PATH names the CSV file of a family whose points are not in its own file;\n"
    "other keys change every run: calibration=mine.json.\n";

void add_directory(const fs::path& directory, std::vector<fs::path>& out) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".toml") found.push_back(entry.path());
  if (found.empty()) throw UserError(directory.string(), "", "no .toml files in this directory");
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

std::vector<fs::path> files_of(const std::vector<std::string>& words) {
  std::vector<fs::path> out;
  for (const std::string& word : words) {
    std::error_code error;
    if (fs::is_directory(word, error)) {
      add_directory(word, out);
    } else if (fs::is_regular_file(word, error)) {
      out.emplace_back(word);
    } else {
      const fs::path shipped = scenarios::locate(word, scenarios::ShippedKind::published, "");
      if (!fs::exists(shipped, error))
        throw UserError(word, "",
                        scenarios::not_found(word, scenarios::ShippedKind::published, shipped));
      out.push_back(shipped);
    }
  }
  if (words.empty()) add_directory(data_directory() / "scenarios" / "published", out);
  return out;
}

fs::path csv_directory(const std::string& word) {
  std::error_code error;
  if (!word.empty() && !fs::is_directory(word, error))
    throw UserError("--csv-dir", "", fmt::format("there is no directory {}", word));
  return word;
}

std::vector<scenarios::PublishedFamily> read_all(const std::vector<fs::path>& files,
                                                 const std::vector<std::string>& overrides,
                                                 const fs::path& csv_directory) {
  std::vector<scenarios::PublishedFamily> families;
  std::vector<Problem> problems;
  for (const fs::path& file : files) try {
      families.push_back(scenarios::read_published(file, overrides, csv_directory));
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    }
  if (!problems.empty()) throw UserError(problems);
  return families;
}

// `work` with a bar on a terminal; a file is told nothing.
auto with_progress(const auto& work) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  Progress progress(stderr, terminal, std::chrono::seconds(1));
  return work(terminal ? &progress : nullptr);
}

tables::Metadata metadata_of(const validation::Validation& validation) {
  std::string hashes;
  for (const validation::ValidationRow& row : validation.rows) hashes += row.scenario_hash + "\n";
  return {{"version", std::string(results::version())}, {"scenarios_hash", hash_text(hashes)}};
}

}  // namespace

int validate_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print JSON instead of tables")(
      "out,o", po::value<std::string>()->default_value("results/validation.parquet"),
      "Parquet file to write")("page", po::value<std::string>(),
                               "also write a page in Markdown, hits and misses")(
      "sensitivity", "also show what a 10 % change of each part of the calibration moves")(
      "ablate",
      "also show each source's median error with the constants that were chosen by looking at "
      "these runs made neutral: all of them, and one at a time")(
      "csv-dir", po::value<std::string>()->default_value(""),
      "where to look for CSV files that are not shipped, there and in folders below");
  add_threads_option(options);
  po::variables_map values;
  std::vector<std::string> words, files, overrides;
  if (!parse(arguments, kValidateUsage, options, values, words)) return 0;
  for (const std::string& word : words) (is_override(word) ? overrides : files).push_back(word);
  const auto limit = limit_threads(values);
  std::vector<scenarios::PublishedFamily> families =
      read_all(files_of(files), overrides, csv_directory(values["csv-dir"].as<std::string>()));
  const validation::Validation validation =
      with_progress([&](Progress* p) { return validation::validate(families, p); });
  const bool page = values.count("page") > 0;
  validation::FurtherTables further;
  if (page || values.count("sensitivity"))
    further.sensitivity =
        with_progress([&](Progress* p) { return validation::sensitivity(families, p); });
  if (page || values.count("ablate"))
    further.ablation =
        with_progress([&](Progress* p) { return validation::ablate(families, validation, p); });
  for (const scenarios::PublishedFamily& f : families)
    if (!f.skipped.empty()) say(f.source + ": skipped: " + f.skipped);
  const fs::path out = values["out"].as<std::string>();
  if (out.has_parent_path()) make_directories(out.parent_path());
  tables::write_parquet(validation::validation_table(validation), metadata_of(validation), out);
  say("wrote " + out.string());
  if (page) {
    write_file_atomically(values["page"].as<std::string>(),
                          validation::validation_page(validation, families, further));
    say("wrote " + values["page"].as<std::string>());
  }
  if (values.count("json"))
    print_data(validation::validation_json(validation, families, further));
  else
    print_text(
        validation::validation_text(validation, families) +
        (values.count("sensitivity") ? validation::sensitivity_text(further.sensitivity) : "") +
        (values.count("ablate") ? validation::ablation_text(further.ablation) : ""));
  return 0;
}

}  // namespace mllmsim::cli
