#include "results/analysis/explain.hpp"

#include <tbb/parallel_for_each.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "results/analysis/remedies.hpp"
#include "results/run/run_scenario.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::analysis {
namespace {

// Slowest over mean; 1 if there is nothing.
double imbalance(const std::vector<double>& times) {
  double sum = 0, most = 0;
  for (const double t : times) {
    sum += t;
    most = std::max(most, t);
  }
  return sum > 0 ? most * static_cast<double>(times.size()) / sum : 1;
}

void measure_imbalance(Explanation& out) {
  std::map<int, double> by_stage, by_replica;
  std::map<std::pair<int, int>, std::map<int, double>> by_micro_batch;  // of each GPU
  for (const results::SpanRow& span : out.run.spans) {
    if (span.stream != StreamKind::compute || span.kind == SpanKind::bubble) continue;
    const double time = to_seconds(span.end - span.start).value;
    by_stage[span.stage] += time;
    by_replica[span.replica] += time;
    if (span.micro_batch >= 0) by_micro_batch[{span.replica, span.stage}][span.micro_batch] += time;
  }
  const auto values = [](const auto& map) {
    std::vector<double> times;
    for (const auto& [key, time] : map) times.push_back(time);
    return times;
  };
  out.across_stages = imbalance(values(by_stage));
  out.across_replicas = imbalance(values(by_replica));
  for (const auto& [gpu, times] : by_micro_batch)
    out.across_micro_batches = std::max(out.across_micro_batches, imbalance(values(times)));
  double most = -1;
  for (const auto& [stage, time] : by_stage)
    if (time > most) {
      most = time;
      out.slowest_stage = stage;
    }
}

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

// Optimus plans and simulates kernel by kernel: a whole pass for every remedy would take too long.
scenarios::Scenario in_few_steps(scenarios::Scenario scenario) {
  constexpr std::int64_t kSteps = 32;
  if (scenario.job.data.steps == 0) scenario.job.data.steps = kSteps;
  return scenario;
}

class Trial {
 public:
  Trial(const Read& read, const scenarios::Scenario& scenario, const results::RunResult& run,
        Progress* progress)
      : read_(read), scenario_(scenario), run_(run), progress_(progress) {}

  void simulate(std::vector<Remedy>& remedies) const {
    std::vector<Remedy*> tried;
    for (Remedy& r : remedies)
      if (r.note.empty()) tried.push_back(&r);
    if (progress_) progress_->begin(tried.size(), "remedies");
    tbb::parallel_for_each(tried, [&](Remedy* remedy) {
      // Its own parallel loops must not pick up another remedy while they wait.
      tbb::this_task_arena::isolate([&] { simulate(*remedy); });
      if (progress_) progress_->done(true);
    });
    if (progress_) progress_->end();
  }

 private:
  void simulate(Remedy& remedy) const {
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

  const Read& read_;
  const scenarios::Scenario& scenario_;
  const results::RunResult& run_;
  Progress* progress_;
};

bool any_fits(const std::vector<Remedy>& remedies) {
  return std::any_of(remedies.begin(), remedies.end(),
                     [](const Remedy& r) { return r.run && r.run->fits; });
}

}  // namespace

Explanation explain(const Read& read, Progress* progress) {
  const scenarios::Scenario scenario = in_few_steps(read({}));
  Explanation out;
  out.run = results::run_scenario(scenario, {.critical_path = true});
  measure_imbalance(out);
  const Trial trial(read, scenario, out.run, progress);
  out.remedies = remedies_for(out, scenario);
  trial.simulate(out.remedies);
  if (!out.run.fits && !any_fits(out.remedies)) {
    std::vector<Remedy> pairs = pairs_of(out.remedies);
    trial.simulate(pairs);
    std::erase_if(pairs, [](const Remedy& r) { return !r.run || !r.run->fits; });
    out.remedies.insert(out.remedies.end(), std::make_move_iterator(pairs.begin()),
                        std::make_move_iterator(pairs.end()));
  }
  const auto rank = [](const Remedy& r) { return r.run ? (r.run->fits ? 0 : 1) : 2; };
  std::stable_sort(out.remedies.begin(), out.remedies.end(), [&](const Remedy& a, const Remedy& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.gain > b.gain;
  });
  return out;
}

}  // namespace mllmsim::analysis
