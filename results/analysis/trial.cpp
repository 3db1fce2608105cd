#include "results/analysis/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "results/analysis/remedies.hpp"
#include "results/run/run_scenario.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/parallel.hpp"

namespace mllmsim::analysis {
namespace {

constexpr std::int64_t kTokenStep = 64;

// Every micro-batch as the mean of those in the simulated steps.
Data uniform_data(const results::RunResult& run) {
  double micro_batches = 0, tokens = 0, tiles = 0;
  for (const results::StepRow& step : run.steps) {
    micro_batches += static_cast<double>(step.micro_batches);
    tokens += static_cast<double>(step.llm_tokens);
    tiles += static_cast<double>(step.tiles);
  }
  const double samples = micro_batches * static_cast<double>(run.micro_batch_size);
  Data data;
  data.samples = run.samples;
  data.tokens_per_sample = std::llround(tokens / samples);
  data.tiles_per_sample = tiles / samples;
  return data;
}

bool fits(const Remedy& r) { return r.run && r.run->fits; }

// The largest multiple of `step` below `size` with which the run fits.
void shrink(const Trial& trial, const std::string& key, std::int64_t size, std::int64_t step,
            std::vector<Remedy>& out) {
  std::int64_t low = 0, high = (size - 1) / step;  // fits, in steps; may fit
  std::optional<Remedy> best;
  const auto tries =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(high)));  // at most
  if (trial.progress()) trial.progress()->begin(tries, "sizes of samples");
  while (low < high) {
    const std::int64_t tried = (low + high + 1) / 2;
    const std::string change = fmt::format("{}={}", key, tried * step);
    Remedy remedy{fmt::format("{} {}", key, tried * step), change};
    remedy.overrides = {change};
    trial.simulate(remedy);
    if (fits(remedy)) {
      low = tried;
      best = std::move(remedy);
    } else {
      high = tried - 1;
    }
    if (trial.progress()) trial.progress()->done(true);
  }
  if (trial.progress()) trial.progress()->end();
  if (best) out.push_back(std::move(*best));
}

}  // namespace

// Optimus plans and simulates kernel by kernel: a whole pass for every remedy would take too long.
scenarios::Scenario in_few_steps(scenarios::Scenario scenario) {
  constexpr std::int64_t kSteps = 32;
  if (scenario.job.data.steps == 0) scenario.job.data.steps = kSteps;
  return scenario;
}

void Trial::simulate(std::vector<Remedy>& remedies) const {
  std::vector<Remedy*> tried;
  for (Remedy& r : remedies)
    if (r.note.empty()) tried.push_back(&r);
  if (progress_) progress_->begin(tried.size(), "remedies");
  parallel_for(tried.size(), [&](std::size_t i) {
    simulate(*tried[i]);
    if (progress_) progress_->done(true);
  });
  if (progress_) progress_->end();
}

void Trial::simulate(Remedy& remedy) const {
  try {
    scenarios::Scenario changed =
        remedy.same_micro_batches ? scenario_ : in_few_steps(read_(remedy.overrides));
    if (remedy.same_micro_batches) {
      changed.job.data = uniform_data(run_);
      Parallelism& p = changed.job.parallelism;
      p.global_batch_size = run_.micro_batches * p.micro_batch_size * p.data_parallel_size;
    }
    remedy.run = results::run_scenario(changed, {.timeline = false});
  } catch (const UserError& e) {
    remedy.note = e.problems().front().message;
    return;
  }
  if (remedy.same_micro_batches) {
    const double ratio = remedy.run->iteration / run_.iteration;
    remedy.run->samples_per_s = run_.samples_per_s / ratio;
    remedy.run->gpu_days = run_.gpu_days * ratio;
  }
  remedy.gain = remedy.run->samples_per_s / run_.samples_per_s - 1;
  if (!remedy.run->fits) remedy.note = "does not fit: " + remedy.run->reason;
}

void Trial::simulate_pairs(std::vector<Remedy>& remedies) const {
  const auto alone = [](const Remedy& r) {
    return fits(r) && r.change.find("strategy.name") == std::string::npos;
  };
  if (std::any_of(remedies.begin(), remedies.end(), alone)) return;
  std::vector<Remedy> pairs = pairs_of(remedies);
  simulate(pairs);
  std::erase_if(pairs, [](const Remedy& r) { return !fits(r); });
  remedies.insert(remedies.end(), std::make_move_iterator(pairs.begin()),
                  std::make_move_iterator(pairs.end()));
}

std::vector<Remedy> data_that_fits(const Trial& trial, const Job& job) {
  std::vector<Remedy> out;
  if (job.given_times) return out;
  if (!job.data.set) {
    shrink(trial, "data.tokens_per_sample", job.data.tokens_per_sample, kTokenStep, out);
    return out;
  }
  std::int64_t tiles = 0, tokens = 0;
  for (const data::Sample& s : job.data.set->samples) {
    tiles = std::max<std::int64_t>(tiles, s.tiles);
    tokens = std::max<std::int64_t>(tokens, s.tokens);
  }
  shrink(trial, "data.max_tiles", tiles, 1, out);  // which a file of lengths does not take
  shrink(trial, "data.max_tokens", tokens, kTokenStep, out);
  return out;
}

std::vector<results::FitRow> what_would_fit(const Read& read, const results::RunResult& run,
                                            Progress* progress) {
  const scenarios::Scenario scenario = in_few_steps(read({}));
  const Trial trial(read, scenario, run, progress);
  std::vector<Remedy> remedies = remedies_to_fit(scenario);
  trial.simulate(remedies);
  trial.simulate_pairs(remedies);
  std::erase_if(remedies, [](const Remedy& r) { return !fits(r); });
  std::stable_sort(remedies.begin(), remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.gain > b.gain; });
  for (Remedy& r : data_that_fits(trial, scenario.job)) remedies.push_back(std::move(r));
  std::vector<results::FitRow> out;
  for (const Remedy& r : remedies)
    out.push_back({r.change, r.run->iteration, r.run->gpu_days, r.run->peak_memory});
  return out;
}

}  // namespace mllmsim::analysis
