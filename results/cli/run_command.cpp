// mllmsim run FILE... [a.b=c ...]: simulate scenarios, print what a person wants to know, leave
// Parquet behind.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "results/analysis/gaps.hpp"
#include "results/analysis/trial.hpp"
#include "results/cli/command.hpp"
#include "results/cli/directory_name.hpp"
#include "results/cli/streams.hpp"
#include "results/cli/threads.hpp"
#include "results/run/run_scenario.hpp"
#include "results/run/run_tables.hpp"
#include "results/text/figures.hpp"
#include "results/text/json.hpp"
#include "results/text/summary.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/progress.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/run/job_size.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kRunUsage =
    "usage: mllmsim run FILE... [key=value ...] [options]\n\n"
    "Simulates each scenario FILE (a path, or the name of a shipped run) and prints what it\n"
    "costs. key=value overrides any field of the scenario:\n"
    "parallelism.pipeline_model_parallel_size=8 strategy.name=balanced cluster.nodes=16\n"
    "granularity=kernel. For a run that does not fit it lists what would, each change\n"
    "simulated.\n";

// Runs of one name with different overrides are kept apart.
fs::path directory_of(const scenarios::Scenario& scenario,
                      const std::vector<std::string>& overrides, const std::optional<fs::path>& out,
                      bool several) {
  if (!out) return fs::path("results") / "runs" / directory_name(scenario.job.name, overrides);
  return several ? *out / scenario.job.name : *out;
}

std::vector<fs::path> directories_of(const std::vector<scenarios::Scenario>& scenarios,
                                     const std::vector<std::string>& overrides,
                                     const std::optional<fs::path>& out) {
  std::vector<fs::path> directories;
  for (const scenarios::Scenario& s : scenarios) {
    const fs::path dir = directory_of(s, overrides, out, scenarios.size() > 1);
    if (std::find(directories.begin(), directories.end(), dir) != directories.end())
      throw UserError(s.file.string(), "name",
                      fmt::format("another run writes to {} already; give one a name of its own",
                                  dir.string()));
    directories.push_back(dir);
  }
  return directories;
}

std::vector<scenarios::Scenario> read_all(const std::vector<std::string>& files,
                                          const std::vector<std::string>& overrides) {
  std::vector<scenarios::Scenario> scenarios;
  std::vector<Problem> problems;
  for (const std::string& file : files) try {
      scenarios.push_back(scenarios::read_scenario(file, overrides));
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    }
  if (!problems.empty()) throw UserError(problems);
  return scenarios;
}

results::SummaryStyle style_of(const std::vector<fs::path>& directories,
                               std::optional<double> price) {
  results::SummaryStyle style{results::utf8_locale(), price, {}};
  for (const fs::path& directory : directories)
    style.measure_commands.push_back(analysis::measure_command({directory.string()}));
  return style;
}

// Says how large a long job is, before it starts.
void announce(const Job& job, const std::string& file) {
  constexpr double kTasksPerSecond = 1e6;  // of one core, about
  constexpr double kLong = 10;             // seconds
  const JobSize size = size_of(job);
  const double cores = std::min(size.steps, static_cast<double>(thread_limit()));
  const double seconds = size.all_tasks() / (kTasksPerSecond * cores);
  if (seconds < kLong) return;
  constexpr double kSecondsPerDay = 86400;
  say(fmt::format("{}: about {} steps of {} tasks, {} tasks in all, which may take {}{}", file,
                  results::count(size.steps), results::count(size.tasks),
                  results::count(size.all_tasks()),
                  seconds < 120 ? fmt::format("{:.0f} seconds", seconds)
                                : results::duration(seconds / kSecondsPerDay),
                  job.data.set ? "; data.steps=32 simulates 32 steps of the pass" : ""));
}

// What is allowed but seldom meant.
void ask(const Job& job, const std::string& file) {
  if (job.given_times || job.model.llm.trained || job.model.llm.blocks.adapters.lora_rank > 0)
    return;
  say(
      fmt::format("{}: model.llm.trained is false: the LLM passes gradients on but learns nothing, "
                  "as where a projector is aligned; model.llm.lora trains adapters on it",
                  file));
}

// Frameworks add DeepStack's features where the ViT is; a cut between is simulated, with what it
// sends.
std::string cut_of_deepstack(const Job& job, const Plan& plan) {
  std::int64_t features = 0;
  for (const Encoder& e : job.model.encoders) features = std::max(features, e.deepstack_features);
  const Chunk* made = nullptr;  // where the projector is
  std::vector<const Chunk*> chunks;
  for (const std::vector<Chunk>& rank : plan.stages)
    for (const Chunk& chunk : rank) chunks.push_back(&chunk);
  for (const Chunk* chunk : chunks)
    for (const PlannedLayer& p : *chunk)
      if (p.layer.kind == LayerKind::projector) made = chunk;
  for (const Chunk* chunk : chunks)
    for (const PlannedLayer& p : *chunk)
      if (made && made != chunk && is_llm(job.model, p.layer) && p.layer.kind == LayerKind::block &&
          p.layer.index < features)
        return fmt::format(
            "DeepStack's features travel to block {} of the LLM, which is on another stage than "
            "the "
            "projector; Megatron's Qwen3-VL needs the first {} blocks where the ViT is",
            p.layer.index, features);
  return "";
}

// So that a trainer can be given exactly what was simulated.
std::string batches_of(const Job& job, const Plan& plan) {
  const auto sequences = [](const TokenBatch& batch) {
    boost::json::array out;
    for (const SequenceGroup& g : batch.groups)
      out.push_back(boost::json::array{g.length, g.count});
    return out;
  };
  std::string out;
  const auto add = [&](std::int64_t step, const std::vector<std::vector<MicroBatch>>& replicas) {
    for (std::size_t r = 0; r < replicas.size(); ++r)
      for (std::size_t i = 0; i < replicas[r].size(); ++i) {
        const MicroBatch& mb = replicas[r][i];
        boost::json::array encoders;
        for (const TokenBatch& batch : mb.encoders) encoders.push_back(sequences(batch));
        out += line_json(boost::json::object{{"step", step},
                                             {"replica", r},
                                             {"micro_batch", i},
                                             {"samples", mb.samples},
                                             {"llm", sequences(mb.llm)},
                                             {"encoders", std::move(encoders)}}) +
               "\n";
      }
  };
  if (!plan.pass) add(0, plan.micro_batches);
  if (plan.pass)
    for (const std::int64_t step : plans::chosen_steps(job, *plan.pass))
      add(step, plans::micro_batches_of(job, *plan.pass, step));
  return out;
}

// Each change is simulated: of runs that are not to be started as they are. May take many times as
// long as these, so a terminal is told how far it is.
void find_what_fits(const std::vector<std::string>& files,
                    const std::vector<std::string>& overrides,
                    std::vector<results::RunResult>& results) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  Progress progress(stderr, terminal, std::chrono::seconds(1));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].fits || !results[i].feasible()) continue;
    const auto read = [&](std::vector<std::string> changes) {
      changes.insert(changes.begin(), overrides.begin(), overrides.end());
      return scenarios::read_scenario(files[i], changes);
    };
    results[i].would_fit =
        analysis::what_would_fit(read, results[i], terminal ? &progress : nullptr);
  }
}

// All runs at once. On a terminal a bar shows how far they are: by plans tried and steps if there
// is one run.
std::vector<results::RunResult> simulate_all(const std::vector<scenarios::Scenario>& scenarios,
                                             const std::vector<std::string>& files,
                                             std::string* batches) {
  std::vector<results::RunResult> results(scenarios.size());
  std::vector<std::string> cuts(scenarios.size());
  const bool terminal = isatty(STDERR_FILENO) != 0, several = scenarios.size() > 1;
  Progress progress(stderr, terminal, std::chrono::seconds(1));
  if (terminal && several) progress.begin(scenarios.size(), "runs");
  parallel_for(scenarios.size(), [&](std::size_t i) {
    std::vector<results::GapRow> gaps;
    RunOptions options;
    options.planned = [&](const Job& job, const Plan& plan) {
      gaps = analysis::gaps_of(scenarios[i], job, plan, {.most = analysis::kMeasuredFirst}).gaps;
      if (batches) *batches = batches_of(job, plan);
      cuts[i] = cut_of_deepstack(job, plan);
    };
    if (terminal && !several) options.progress = &progress;
    try {
      results[i] = results::run_scenario(scenarios[i], options);
    } catch (const InternalError& e) {
      throw InternalError(
          fmt::format("{} (scenario {} of {})", e.what(), scenarios[i].hash, files[i]));
    }
    results[i].gaps = std::move(gaps);
    if (terminal && several) progress.done(true);
  });
  progress.end();
  for (std::size_t i = 0; i < scenarios.size(); ++i)
    if (!cuts[i].empty()) say(fmt::format("{}: {}", files[i], cuts[i]));
  return results;
}

// Loudly, as a figure does not show it.
void warn_of_estimates(const results::RunResult& run) {
  const double share = run.source_shares[static_cast<std::size_t>(costs::Source::estimate)];
  if (run.without_model() || !(share > 0.5)) return;
  say(fmt::format(
      "warning: {:.0f} % of {}'s kernel time rests on estimates, not measurements; `mllmsim "
      "calibrate gaps` lists what to measure",
      100 * share, run.name));
}

}  // namespace

int run_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(),
                        "directory for the Parquet files (default results/runs/<name>)")(
      "strategy,s", po::value<std::string>(), "the same as strategy.name=NAME")(
      "json", "print JSON instead of tables")(
      "batches", po::value<std::string>(),
      "also write the micro-batches of the simulated steps to this file, a line of JSON each: "
      "lengths\n"
      "and counts of the sequences that the LLM and each encoder see; of one run");
  add_threads_option(options);
  add_price_option(options);
  po::variables_map values;
  std::vector<std::string> words, files, overrides;
  if (!parse(arguments, std::string(kRunUsage) + kShortForms, options, values, words)) return 0;
  for (const std::string& word : words) (is_override(word) ? overrides : files).push_back(word);
  if (values.count("strategy"))
    overrides.push_back("strategy.name=" + values["strategy"].as<std::string>());
  if (files.empty())
    throw UserError("command line", "",
                    "run needs a scenario file; `mllmsim list runs` shows the shipped ones");

  const std::optional<double> price = price_of(values);
  const auto limit = limit_threads(values);
  const std::vector<scenarios::Scenario> scenarios = read_all(files, overrides);
  std::optional<fs::path> out;
  if (values.count("out")) out = values["out"].as<std::string>();
  const std::vector<fs::path> directories = directories_of(scenarios, overrides, out);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    announce(scenarios[i].job, files[i]);
    ask(scenarios[i].job, files[i]);
  }
  if (values.count("batches") && scenarios.size() > 1)
    throw UserError("command line", "--batches", "expected one run");
  std::string batches;
  std::vector<results::RunResult> results =
      simulate_all(scenarios, files, values.count("batches") ? &batches : nullptr);
  if (values.count("batches")) write_file_atomically(values["batches"].as<std::string>(), batches);
  find_what_fits(files, overrides, results);

  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    results::write_run(results[i], directories[i]);
    if (results[i].planning > Seconds{0.01})
      say(fmt::format("planned in {:.2f} s", results[i].planning.value));
    warn_of_estimates(results[i]);
    say("wrote " + directories[i].string());
    if (!results[i].fits && results[i].feasible())
      say(fmt::format("`mllmsim explain {}` tries what would make it fit",
                      directories[i].string()));
  }
  if (values.count("json"))
    print_data(results::to_json(results, price));
  else
    print_text(results::summaries(results, style_of(directories, price)));
  return 0;
}

}  // namespace mllmsim::cli
