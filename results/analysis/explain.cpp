#include "results/analysis/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "results/analysis/remedies.hpp"
#include "results/analysis/trial.hpp"
#include "results/run/run_scenario.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/parallel.hpp"

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

}  // namespace

Explanation explain(const Read& read, Progress* progress) {
  const scenarios::Scenario scenario = in_few_steps(read({}));
  Explanation out;
  out.run = results::run_scenario(scenario, {.critical_path = true});
  measure_imbalance(out);
  const Trial trial(read, scenario, out.run, progress);
  out.remedies = remedies_for(out, scenario);
  trial.simulate(out.remedies);
  if (!out.run.fits) {
    trial.simulate_pairs(out.remedies);
    for (Remedy& r : data_that_fits(trial, scenario.job)) out.remedies.push_back(std::move(r));
  }
  const auto rank = [](const Remedy& r) { return r.run ? (r.run->fits ? 0 : 1) : 2; };
  std::stable_sort(out.remedies.begin(), out.remedies.end(), [&](const Remedy& a, const Remedy& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.gain > b.gain;
  });
  return out;
}

}  // namespace mllmsim::analysis
