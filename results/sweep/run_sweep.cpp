#include "results/sweep/run_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "results/run/version.hpp"
#include "results/sweep/journal.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/files/portable.hpp"
#include "scenarios/read/scenario.hpp"
#include "scenarios/tree/merge.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/parallel.hpp"

namespace mllmsim::sweep {
namespace {

std::vector<std::string> overrides_of(const SweepJob& job, std::size_t point) {
  std::vector<std::string> all = job.overrides;
  const std::vector<std::string> own = job.sweep.overrides(point);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// Another build may simulate otherwise, whatever its version says.
std::string program_hash() {
  return hash_text(read_file("/proc/self/exe", kLargeFile)) + std::string(results::version());
}

class SweepRun {
 public:
  SweepRun(const SweepJob& job, const std::filesystem::path& directory)
      : job_(job), file_(scenarios::run_file(job.file.string())) {
    require_readable(job, files_);
    journal_.emplace(directory);
  }

  SweepResult run(Progress& progress, const std::function<bool()>& stop) {
    SweepResult out;
    const std::size_t all = job_.sweep.points();
    for (std::size_t p = job_.shard.index - 1; p < all; p += job_.shard.count)
      out.points.push_back(p);
    out.runs.resize(out.points.size());
    std::atomic<bool> stopped = false;
    std::atomic<std::size_t> found = 0;
    progress.begin(out.points.size());
    parallel_for(out.points.size(), [&]() -> std::function<void(std::size_t)> {
      const auto simulators = std::make_shared<results::Simulators>();
      return [&, simulators](std::size_t i) {
        if (stopped || (stopped = stop())) return;
        const bool was_there = run_point(out.points[i], *simulators, out.runs[i]);
        found += was_there;
        progress.done(!was_there);
      };
    });
    progress.end();
    journal_->sync();
    out.interrupted = stopped;
    out.found = found;
    out.aside = journal_->finished().size() - std::min(journal_->finished().size(), out.found);
    out.metadata = metadata();
    return out;
  }

 private:
  // Whether the journal had it.
  bool run_point(std::size_t point, results::Simulators& simulators, results::RunResult& out) {
    const std::vector<std::string> changes = overrides_of(job_, point);
    std::optional<scenarios::Scenario> scenario;
    results::RunResult infeasible;
    std::string key;
    try {
      scenario = scenarios::read_scenario(file_, changes, &files_);
      key = key_of(*scenario);
    } catch (const UserError& e) {
      infeasible = unreadable(changes, reason_of(e));
      key = hash_text(fmt::format("{}\n{}\n{}\n{}", infeasible.name, fmt::join(changes, "\n"),
                                  infeasible.reason, program_));
    }
    if (const auto it = journal_->finished().find(key); it != journal_->finished().end()) {
      out = it->second;
      return true;
    }
    out = scenario ? simulated_point(*scenario, files_, simulators) : std::move(infeasible);
    journal_->append(key, out);
    return false;
  }

  std::string key_of(const scenarios::Scenario& scenario) {
    std::string inputs = files_.data_hash(scenario.job.data.set);
    if (!scenario.calibration.empty()) inputs += files_.calibration_hash(scenario.calibration);
    return hash_text(
        fmt::format("{}\n{}\n{}\n{}", scenario.job.name, scenario.text, inputs, program_));
  }

  // All that is known of a point whose scenario is wrong.
  results::RunResult unreadable(const std::vector<std::string>& changes, std::string reason) {
    results::RunResult run;
    scenarios::Problems problems;
    scenarios::Node tree = files_.toml(file_);
    scenarios::apply_overrides(tree, changes, problems);
    const auto text = [&](const scenarios::Node* node, const std::string& otherwise) {
      return node && node->is<std::string>() ? node->as<std::string>() : otherwise;
    };
    const scenarios::Node* strategy = tree.find("strategy");
    if (strategy && strategy->is<scenarios::Node::Table>()) strategy = strategy->find("name");
    run.name = text(tree.find("name"), file_.stem().string());
    run.strategy = text(strategy, Job{}.strategy);
    run.fits = false;
    run.reason = std::move(reason);
    return run;
  }

  // What is needed to run it again: the run file with the overrides and with this sweep.
  tables::Metadata metadata() {
    scenarios::Problems problems;
    scenarios::Node tree = files_.toml(file_);
    scenarios::apply_overrides(tree, job_.overrides, problems);
    tree.as<scenarios::Node::Table>()["sweep"] = job_.sweep.description();
    const std::string text = scenarios::portable_text(tree);
    std::string inputs;
    for (const auto& [name, hash] : files_.hashes()) inputs += hash + " " + name + "\n";
    std::string keys;
    for (const std::string& key : job_.sweep.keys()) keys += key + "\n";
    return {{"scenario", text},
            {"scenario_hash", hash_text(file_.stem().string() + "\n" + text)},
            {"inputs", inputs},
            {"keys", keys},
            {"points", std::to_string(job_.sweep.points())},
            {"version", std::string(results::version())}};
  }

  const SweepJob& job_;
  std::filesystem::path file_;
  std::string program_ = program_hash();
  scenarios::InputFiles files_;
  std::optional<Journal> journal_;
};

}  // namespace

std::string reason_of(const UserError& error) {
  std::string out;
  for (const Problem& p : error.problems())
    out += (out.empty() ? "" : "; ") + (p.key.empty() ? "" : p.key + ": ") + p.message;
  return scenarios::portable_message(out);
}

results::RunResult simulated_point(const scenarios::Scenario& scenario,
                                   scenarios::InputFiles& files, results::Simulators& simulators) {
  results::RunResult run;
  try {
    run = results::run_scenario(scenario, files, simulators, {.timeline = false});
  } catch (const UserError& e) {  // found while planning
    run = results::described(scenario);
    run.fits = false;
    run.reason = reason_of(e);
  } catch (const InternalError& e) {
    throw InternalError(fmt::format("{} (scenario {})", e.what(), scenario.hash));
  }
  run.scenario_text.clear();
  run.steps.clear();
  run.facts.clear();
  return run;
}

std::filesystem::path shard_directory(const std::filesystem::path& sweep, const Shard& shard) {
  return sweep / fmt::format("shard-{}-of-{}", shard.index, shard.count);
}

void require_readable(const SweepJob& job, scenarios::InputFiles& files) {
  constexpr std::size_t kMostTried = 64;
  const std::size_t points = job.sweep.points(), tried = std::min(points, kMostTried);
  std::optional<UserError> first;
  std::vector<Problem> common;
  const auto same = [](const Problem& a, const Problem& b) {
    return a.key == b.key && a.message == b.message;  // `where` may quote the value
  };
  for (std::size_t i = 0; i < tried; ++i) try {
      scenarios::read_scenario(job.file, overrides_of(job, i * points / tried), &files);
      return;  // usually the first will do
    } catch (const UserError& e) {
      if (!first) common = first.emplace(e).problems();
      std::erase_if(common, [&](const Problem& p) {
        return std::none_of(e.problems().begin(), e.problems().end(),
                            [&](const Problem& other) { return same(p, other); });
      });
    }
  if (!common.empty()) throw UserError(common);
  if (tried == points) throw *first;
}

SweepResult run_sweep(const SweepJob& job, const std::filesystem::path& directory,
                      Progress& progress, const std::function<bool()>& stop) {
  return SweepRun(job, directory).run(progress, stop);
}

}  // namespace mllmsim::sweep
