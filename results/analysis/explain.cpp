#include "results/analysis/explain.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for_each.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "results/run/run_scenario.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::analysis {
namespace {

constexpr double kAlike = 1.001;  // below this an imbalance is none

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

std::vector<Remedy> remedies_for(const Explanation& e, const scenarios::Scenario& scenario) {
  const Job& job = scenario.job;
  const bool recomputes =
      job.recompute.encoder != Recompute::none || job.recompute.llm != Recompute::none;
  std::vector<Remedy> out;
  const auto add = [&](const char* name, std::string change, const char* why_not) {
    out.push_back({name, std::move(change)});
    if (why_not) out.back().note = why_not;
  };
  if (job.given_times) {
    add("recompute off", "", "the times are given");
    add("better cut", "", "the times are given");
  } else {
    add("recompute off", "recompute=none", recomputes ? nullptr : "nothing is recomputed");
    add("better cut", "strategy.name=balanced",
        e.run.stages.size() < 2      ? "there is one stage"
        : job.strategy == "balanced" ? "the layers are cut by their times already"
                                     : nullptr);
  }
  const bool alike = e.across_micro_batches < kAlike && e.across_replicas < kAlike;
  add("balanced data", "every micro-batch of mean size",
      alike ? "all micro-batches are alike" : nullptr);
  out.back().same_micro_batches = true;
  if (job.data.set)
    add("packed data", "data.batching=\"isf\"",
        data::is_packed(job.data.batching) ? "the data are packed already" : nullptr);
  add("more micro-batches",
      fmt::format("parallelism.global_batch_size={}", 2 * job.parallelism.global_batch_size),
      nullptr);
  return out;
}

}  // namespace

Explanation explain(
    const std::function<scenarios::Scenario(const std::vector<std::string>&)>& read) {
  const scenarios::Scenario scenario = read({});
  Explanation out;
  out.run = results::run_scenario(scenario, {.critical_path = true});
  measure_imbalance(out);
  out.remedies = remedies_for(out, scenario);
  tbb::parallel_for_each(out.remedies, [&](Remedy& remedy) {
    if (!remedy.note.empty()) return;
    try {
      scenarios::Scenario changed = remedy.same_micro_batches ? scenario : read({remedy.change});
      if (remedy.same_micro_batches) changed.job.data = uniform_data(out.run);
      remedy.run = results::run_scenario(changed, {.timeline = false});
    } catch (const UserError& e) {
      remedy.note = e.problems().front().message;
      return;
    }
    if (remedy.same_micro_batches) {
      const double ratio = remedy.run->iteration / out.run.iteration;
      remedy.run->samples_per_s = out.run.samples_per_s / ratio;
      remedy.run->gpu_days = out.run.gpu_days * ratio;
    }
    remedy.gain = remedy.run->samples_per_s / out.run.samples_per_s - 1;
    if (!remedy.run->fits) remedy.note = "does not fit: " + remedy.run->reason;
  });
  const auto rank = [](const Remedy& r) { return r.run ? (r.run->fits ? 0 : 1) : 2; };
  std::stable_sort(out.remedies.begin(), out.remedies.end(), [&](const Remedy& a, const Remedy& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.gain > b.gain;
  });
  return out;
}

}  // namespace mllmsim::analysis
