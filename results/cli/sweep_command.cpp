// mllmsim sweep FILE --vary key=values ...: run every combination, on all cores, resumably.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "results/cli/command.hpp"
#include "results/cli/directory_name.hpp"
#include "results/cli/interrupt.hpp"
#include "results/cli/streams.hpp"
#include "results/cli/threads.hpp"
#include "results/run/run_tables.hpp"
#include "results/sweep/run_sweep.hpp"
#include "results/sweep/slurm.hpp"
#include "results/sweep/sweep_summary.hpp"
#include "results/sweep/sweep_tables.hpp"
#include "results/text/json.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kSweepUsage =
    "usage: mllmsim sweep FILE [key=value ...] --vary KEY=VALUES ... [options]\n\n"
    "Simulates every combination of the values and writes a row each, with the varied keys as\n"
    "columns. VALUES are separated by commas; 4..64*2 is 4, 8, ..., 64 and 1..4 is 1, 2, 3, 4.\n"
    "A [sweep] table in FILE says the same. An interrupted sweep continues where it stopped when\n"
    "the same command is given again; points whose scenario or calibration changed run anew.\n"
    "At most 10,000,000 points. With --shard the results are in OUT/shard-I-of-N, and\n"
    "`mllmsim merge OUT` joins them.\n";

constexpr std::size_t kMostShards = 1'000'000;

po::options_description sweep_options() {
  po::options_description options("options");
  const auto text = [] { return po::value<std::string>(); };
  options.add_options()("vary,v", po::value<std::vector<std::string>>()->composing(),
                        "KEY=VALUES, as often as needed")("strategies,s", text(),
                                                          "\"all\", or names separated by commas")(
      "out,o", text(), "directory for the results (default results/sweeps/<name>+<keys>)")(
      "json", "print all rows as JSON instead of a table")(
      "shard", text(), "I/N: only every N-th point from the I-th on, into OUT/shard-I-of-N")(
      "launch", text(), "slurm: submit a job array and a merge job, and wait")(
      "shards", text(), "tasks of the array (default 8, --threads 1 each)")("partition", text(),
                                                                            "Slurm's partition")(
      "sbatch", po::value<std::vector<std::string>>()->composing(),
      "a further option for sbatch, such as --sbatch=--account=x")("detach",
                                                                   "do not wait for Slurm's jobs");
  add_threads_option(options);
  add_price_option(options);
  return options;
}

// "2/8"
sweep::Shard parse_shard(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, '/');
  sweep::Shard shard;
  if (parts.size() == 2) {
    shard.index = to_number<std::size_t>(parts[0]).value_or(0);
    shard.count = to_number<std::size_t>(parts[1]).value_or(0);
  }
  if (parts.size() != 2 || shard.index < 1 || shard.index > shard.count ||
      shard.count > kMostShards)
    throw UserError("command line", "--shard",
                    fmt::format("expected I/N with I from 1 to N and N at most {}, found {}",
                                kMostShards, text));
  return shard;
}

std::string interrupted_text(const fs::path& directory) {
  return fmt::format("interrupted; finished points are in {}, and the same command continues",
                     directory.string());
}

// A point can take minutes. After a signal those under way get a moment to finish; then the program
// ends without them, which the journal is made for.
class Patience {
 public:
  explicit Patience(const fs::path& directory)
      : directory_(directory), watch_([this](const std::stop_token& over) { watch(over); }) {}

 private:
  void watch(const std::stop_token& over) {
    using namespace std::chrono_literals;
    constexpr auto kLook = 50ms, kMoment = 1000ms;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any ended;
    auto waited = 0ms;
    while (!ended.wait_for(lock, over, kLook, [&] { return over.stop_requested(); })) {
      if (!Interrupt::requested() || (waited += kLook) < kMoment) continue;
      say(interrupted_text(directory_));
      std::_Exit(Interrupt::exit_code());
    }
  }

  fs::path directory_;
  std::jthread watch_;
};

// Sweeps of one run over different keys are kept apart; one with more values extends the other.
fs::path default_directory(const sweep::SweepJob& job) {
  std::vector<std::string> parts = job.overrides;
  for (const std::string& key : job.sweep.keys()) parts.push_back(key);
  return fs::path("results") / "sweeps" / directory_name(job.file.stem().string(), parts);
}

sweep::SweepJob read_job(const std::vector<std::string>& words, const po::variables_map& values) {
  sweep::SweepJob job;
  std::vector<std::string> files;
  for (const std::string& word : words) (is_override(word) ? job.overrides : files).push_back(word);
  if (files.size() != 1)
    throw UserError("command line", "",
                    fmt::format("sweep needs one scenario file, found {}; `mllmsim list runs` "
                                "shows the shipped ones",
                                files.size()));
  job.file = scenarios::run_file(files.front());
  std::optional<std::string> strategies;
  if (values.count("strategies")) strategies = values["strategies"].as<std::string>();
  const auto vary = values.count("vary") ? values["vary"].as<std::vector<std::string>>()
                                         : std::vector<std::string>{};
  job.sweep = scenarios::read_sweep(scenarios::parse_toml_file(job.file), vary, strategies);
  if (values.count("shard")) job.shard = parse_shard(values["shard"].as<std::string>());
  return job;
}

fs::path directory_of(const sweep::SweepJob& job, const po::variables_map& values) {
  const fs::path all =
      values.count("out") ? fs::path(values["out"].as<std::string>()) : default_directory(job);
  return values.count("shard") ? sweep::shard_directory(all, job.shard) : all;
}

void announce(const sweep::SweepJob& job) {
  const std::size_t points = job.sweep.points();
  say(job.shard.count > 1 ? fmt::format("{} points, {} of them in shard {} of {}", points,
                                        job.shard.of(points), job.shard.index, job.shard.count)
                          : fmt::format("{} points", points));
}

// Rows for programs, or what a person reads.
void print_points(const sweep::SweepJob& job, const sweep::SweepResult& result, tables::Table runs,
                  const po::variables_map& values) {
  const std::optional<double> price = price_of(values);
  if (!values.count("json")) return print_text(sweep::sweep_summary(job.sweep, result, price));
  if (price) results::add_cost(runs, *price);
  print_data(results::to_json(runs, "points"));
}

void report(const sweep::SweepJob& job, const sweep::SweepResult& result,
            const po::variables_map& values, const sweep::SweepTables& tables,
            const fs::path& directory) {
  if (result.found > 0)
    say(fmt::format("{} of {} points were finished before", result.found, result.points.size()));
  if (result.aside > 0)
    say(fmt::format(
        "{} earlier results are of other points, or of a scenario, calibration or version that "
        "changed; they do not count",
        result.aside));
  say("wrote " + directory.string());
  print_points(job, result, tables.runs, values);
}

// The same sweep for a task of Slurm's.
std::vector<std::string> arguments_of(const std::vector<std::string>& words,
                                      const po::variables_map& values) {
  std::vector<std::string> out = words;
  if (values.count("vary"))
    for (const auto& vary : values["vary"].as<std::vector<std::string>>())
      out.insert(out.end(), {"--vary", vary});
  if (values.count("strategies"))
    out.insert(out.end(), {"--strategies", values["strategies"].as<std::string>()});
  return out;
}

sweep::SlurmSweep slurm_sweep(const sweep::SweepJob& job, const fs::path& directory,
                              const std::vector<std::string>& words,
                              const po::variables_map& values) {
  const auto& how = values["launch"].as<std::string>();
  if (how != "slurm")
    throw UserError("command line", "--launch", fmt::format("expected slurm, found {}", how));
  if (values.count("shard"))
    throw UserError("command line", "--shard", "--launch makes the shards; give --shards N");
  sweep::SlurmSweep sweep;
  sweep.directory = directory;
  sweep.arguments = arguments_of(words, values);
  sweep.points = job.sweep.points();
  constexpr std::size_t kShards = 8;
  sweep.shards = std::min(count_of(values, "shards", kMostShards).value_or(kShards), sweep.points);
  sweep.threads = static_cast<unsigned>(threads_of(values).value_or(1));
  if (values.count("partition")) sweep.partition = values["partition"].as<std::string>();
  if (values.count("sbatch")) sweep.options = values["sbatch"].as<std::vector<std::string>>();
  return sweep;
}

// Signals are ours only here; before and behind, the default ends the program and loses nothing.
sweep::SweepResult run_points(const sweep::SweepJob& job, const fs::path& directory) {
  announce(job);
  const Interrupt interrupt;
  const Patience patience(directory);
  Progress progress(stderr);
  return sweep::run_sweep(job, directory, progress, Interrupt::requested);
}

int launch(const sweep::SweepJob& job, const sweep::SlurmSweep& sweep,
           const po::variables_map& values) {
  scenarios::InputFiles files;
  sweep::require_readable(job, files);  // before anything is submitted
  const sweep::SlurmJobs jobs = sweep::submit(sweep);
  say(fmt::format("{} Slurm jobs {} ({} shards) and {} (merge)",
                  jobs.submitted ? "submitted" : "found running:", jobs.array, sweep.shards,
                  jobs.merge));
  if (values.count("detach")) return 0;
  const Interrupt interrupt;
  Progress progress(stderr);
  if (!sweep::wait_for(sweep, jobs, progress, Interrupt::requested)) {
    say(
        fmt::format("jobs {0} and {1} go on without us; the same command waits for them "
                    "again, scancel {0} {1} stops them",
                    jobs.array, jobs.merge));
    return Interrupt::exit_code();
  }
  results::RunRows rows = results::read_runs(sweep.directory / "runs.parquet");
  sweep::SweepResult result;
  for (std::size_t p = 0; p < rows.runs.size(); ++p) result.points.push_back(p);
  result.runs = std::move(rows.runs);
  say("wrote " + sweep.directory.string());
  print_points(job, result, std::move(rows.table), values);
  return 0;
}

}  // namespace

int sweep_command(const Arguments& arguments) {
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, fmt::format("{}{}", kSweepUsage, kShortForms), sweep_options(), values,
             words))
    return 0;
  price_of(values);  // before anything is simulated
  const sweep::SweepJob job = read_job(words, values);
  const fs::path directory = directory_of(job, values);
  const auto limit = limit_threads(values);
  if (values.count("launch"))
    return launch(job, slurm_sweep(job, directory, words, values), values);
  for (const char* option : {"shards", "partition", "sbatch", "detach"})
    if (values.count(option))
      throw UserError("command line", fmt::format("--{}", option), "goes with --launch slurm");
  const sweep::SweepResult result = run_points(job, directory);
  if (result.interrupted) {
    say(interrupted_text(directory));
    return Interrupt::exit_code();
  }
  const sweep::SweepTables tables = sweep::tables_of(job.sweep, result);
  sweep::write_sweep(tables, directory);
  report(job, result, values, tables, directory);
  return 0;
}

}  // namespace mllmsim::cli
