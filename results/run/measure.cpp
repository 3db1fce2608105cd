#include "results/run/measure.hpp"
#include "cost_models/calibration/calibrated_costs.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <chrono>

#include "results/run/measure_step.hpp"
#include "sim/account/memory.hpp"
#include "sim/base/errors.hpp"
#include "strategies/job/strategy.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/run/plan_memory.hpp"

namespace mllmsim::results {
namespace {

// Everything known after the simulation of all chosen steps.
struct Run {
  const Job& job;
  const costs::KernelCosts* kernels;  // null if times are given
  Plan plan;
  std::vector<StepFigures> steps;

  std::size_t ranks() const { return plan.stages.size(); }
  std::size_t replicas() const { return plan.micro_batches.size(); }
  // A single simulated replica stands for all.
  double weight() const {
    return static_cast<double>(job.parallelism.data_parallel_size) /
           static_cast<double>(replicas());
  }
  double step_count() const { return static_cast<double>(steps.size()); }
  Time span() const {
    Time sum{};
    for (const StepFigures& s : steps) sum += s.span;
    return sum;
  }
};

// "vit.embedding, 9 x vit.block, 8 x llm.block", with virtual stages "... in 3 chunks (7 | 5 | 6)".
std::string describe(const Model& model, const std::vector<Chunk>& chunks) {
  std::vector<std::pair<std::string, int>> runs;
  std::string sizes;
  for (const Chunk& chunk : chunks) {
    for (const PlannedLayer& p : chunk) {
      const std::string name = layer_name(model, p.layer);
      if (runs.empty() || runs.back().first != name) runs.emplace_back(name, 0);
      ++runs.back().second;
    }
    sizes += (sizes.empty() ? "" : " | ") + std::to_string(chunk.size());
  }
  std::string out;
  for (const auto& [name, n] : runs)
    out += (out.empty() ? "" : ", ") + (n > 1 ? fmt::format("{} x {}", n, name) : name);
  if (chunks.size() > 1 && !runs.empty())
    out += fmt::format(" in {} chunks ({})", chunks.size(), sizes);
  return out;
}

void measure_state(const Run& run, StageRow& row) {
  const run::RankState held = run::rank_state(run.job, run.plan, row.stage);
  row.parameters = held.parameters;
  row.weights = held.state.weights;
  row.gradients = held.state.gradients;
  row.optimizer = held.state.optimizer;
  row.reserve = run.job.software.memory_reserve;
}

StageRow stage_row(const Run& run, std::size_t rank) {
  StageRow row;
  row.stage = static_cast<int>(rank);
  row.layers = describe(run.job.model, run.plan.stages[rank]);
  if (run.plan.encoders)
    row.layers += "; beside them " +
                  describe(run.job.model, {run.plan.encoders->stage_of(static_cast<int>(rank))});
  for (const Chunk& chunk : run.plan.stages[rank])
    for (const PlannedLayer& p : chunk) {
      if (p.layer.kind != LayerKind::block) continue;
      ++row.blocks;
      row.recomputed_blocks += p.recompute == Recompute::full;
    }
  if (run.kernels) measure_state(run, row);
  const double step_share = 1 / run.step_count();
  const double share = step_share / static_cast<double>(run.replicas());
  for (const StepFigures& s : run.steps) {
    row.forward += s.forward[rank] * step_share;
    row.backward += s.backward[rank] * step_share;
    if (run.kernels) row.saved_activations = std::max(row.saved_activations, s.saved[rank]);
    for (std::size_t r = 0; r < run.replicas(); ++r) {
      const std::size_t d = r * run.ranks() + rank;
      row.busy += to_seconds(s.busy[d]) * share;
      for (std::size_t k = 0; k < kBubbleKinds; ++k)
        row.bubbles[k] += to_seconds(s.bubbles[d].times[k]) * share;
      row.peak_activations = std::max(row.peak_activations, s.peaks[d]);
    }
  }
  row.peak_memory =
      row.weights + row.gradients + row.optimizer + row.peak_activations + row.reserve;
  return row;
}

void measure_work(const Run& run, RunResult& out) {
  const double tp = run.job.parallelism.tensor_model_parallel_size;
  std::array<Time, costs::kSources> sources{};
  Time time{};
  for (const StepFigures& s : run.steps) {
    const double weight = run.weight() / run.step_count();
    out.model_flops += s.work.model_flops * weight;
    out.hardware_flops += s.work.kernels.flops * (tp * weight);
    for (std::size_t i = 0; i < costs::kSources; ++i) sources[i] += s.work.kernels.by_source[i];
    time += s.work.kernels.time;
  }
  for (std::size_t i = 0; i < costs::kSources; ++i) out.source_shares[i] = sources[i] / time;
  const double available =
      out.iteration.value * static_cast<double>(out.gpus) * run.kernels->peak().value;
  out.mfu = out.model_flops.value / available;
  out.hfu = out.hardware_flops.value / available;
}

void measure_memory(const Run& run, RunResult& out) {
  out.gpu_memory = run.job.cluster.gpu_memory;
  const StageRow* worst = nullptr;
  for (const StageRow& row : out.stages)
    if (!worst || row.peak_memory > worst->peak_memory) worst = &row;
  out.peak_memory = worst->peak_memory;
  out.fits = out.peak_memory <= out.gpu_memory || !run.kernels;
  if (out.fits) return;
  const auto gib = [](Bytes b) { return static_cast<double>(b.value) / (1LL << 30); };
  out.reason = fmt::format(
      "stage {} needs {:.1f} GiB of {:.1f} GiB: weights {:.1f}, gradients {:.1f}, optimizer "
      "{:.1f}, "
      "activations {:.1f}, reserve {:.1f}",
      worst->stage, gib(worst->peak_memory), gib(out.gpu_memory), gib(worst->weights),
      gib(worst->gradients), gib(worst->optimizer), gib(worst->peak_activations),
      gib(worst->reserve));
}

// Rows of all steps; spans and memory of the one that is shown.
void take_rows(Run& run, RunResult& out) {
  for (StepFigures& s : run.steps) {
    out.steps.insert(out.steps.end(), s.rows.begin(), s.rows.end());
    if (!s.path.empty()) out.critical_path = std::move(s.path);
    if (s.spans.empty()) continue;
    out.spans = std::move(s.spans);
    out.memory = std::move(s.memory);
  }
  for (MemoryRow& row : out.memory) {
    const StageRow& stage = out.stages[static_cast<std::size_t>(row.stage)];
    row.bytes += stage.peak_memory - stage.peak_activations;
  }
}

void measure_data(const Run& run, RunResult& out) {
  double samples = 0, tokens = 0, micro_batches = 0;
  for (const StepRow& row : out.steps) {
    samples += static_cast<double>(row.samples) * run.weight();
    tokens += static_cast<double>(row.llm_tokens) * run.weight();
    micro_batches += static_cast<double>(row.micro_batches) * run.weight();
  }
  out.samples_per_micro_batch = samples / micro_batches;
  if (!run.plan.pass) samples = static_cast<double>(out.global_batch_size);
  const double seconds = to_seconds(run.span()).value;
  out.samples_per_s = samples / seconds;
  out.tokens_per_s_per_gpu = tokens / seconds / out.gpus;
  out.samples = run.job.data.samples;
  constexpr double kSecondsPerDay = 86400;
  out.gpu_days = out.gpus * seconds * out.samples / samples / kSecondsPerDay;
  if (!run.plan.pass) return;
  out.pass_steps = run.plan.pass->steps();
  out.pad_ratio = data::pad_ratio(run.job.data.set->samples, *run.plan.pass);
  const data::DistRatio dist = data::dist_ratio(run.job.data.set->samples, *run.plan.pass);
  out.dist_ratio_tiles = dist.tiles;
  out.dist_ratio_tokens = dist.tokens;
}

RunResult measure(Run run, const scenarios::Scenario& scenario,
                  const std::string& calibration_hash) {
  const Job& job = run.job;
  RunResult out = described(scenario);
  out.calibration_hash = calibration_hash;
  if (run.plan.encoders) out.granularity = name_of(Granularity::kernel);
  out.iteration = to_seconds(run.span()) / run.step_count();
  out.simulated_steps = static_cast<std::int64_t>(run.steps.size());
  out.facts = run.plan.facts;
  for (std::size_t rank = 0; rank < run.ranks(); ++rank) {
    out.stages.push_back(stage_row(run, rank));
    for (std::size_t k = 0; k < kBubbleKinds; ++k)
      out.bubble_shares[k] +=
          out.stages.back().bubbles[k] / out.iteration / static_cast<double>(run.ranks());
  }
  if (run.kernels) {
    out.parameters = parameters(job.model);
    measure_work(run, out);
  }
  measure_memory(run, out);
  take_rows(run, out);
  measure_data(run, out);
  return out;
}

// Steps are independent; each thread has cost memos of its own, so the order does not matter.
std::vector<StepFigures> simulate_pass(const Job& job, const Plan& plan, const Network& network,
                                       const costs::KernelCosts& kernels, const ShownStep& shown) {
  const std::vector<std::int64_t> steps = plans::chosen_steps(job, *plan.pass);
  std::vector<StepFigures> figures(steps.size());
  tbb::enumerable_thread_specific<costs::LayerCosts> thread_costs([&] {
    return costs::LayerCosts(job.model, job.parallelism, job.software, kernels, job.cluster);
  });
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, steps.size()),
                    [&](const tbb::blocked_range<std::size_t>& range) {
                      const CostContext costs{network, kernels, thread_costs.local()};
                      Plan step_plan = plan;
                      for (std::size_t i = range.begin(); i < range.end(); ++i) {
                        step_plan.micro_batches =
                            plans::micro_batches_of(job, *plan.pass, steps[i]);
                        figures[i] = simulate_step(job, step_plan, &costs, steps[i],
                                                   i == 0 ? shown : ShownStep{});
                      }
                    });
  return figures;
}

}  // namespace

RunResult described(const scenarios::Scenario& scenario) {
  const Job& job = scenario.job;
  const Parallelism& p = job.parallelism;
  RunResult out;
  out.name = job.name;
  out.strategy = job.strategy;
  out.model = job.model.name;
  out.cluster = job.cluster.name;
  out.scenario_text = scenario.text;
  out.scenario_hash = scenario.hash;
  out.seed = job.seed;
  out.granularity = name_of(job.granularity);
  out.gpus = p.world_size();
  out.tp = p.tensor_model_parallel_size;
  out.pp = p.pipeline_model_parallel_size;
  out.vpp = p.virtual_pipeline_stages;
  out.dp = p.data_parallel_size;
  out.zero_stage = p.zero_stage;
  out.micro_batch_size = p.micro_batch_size;
  out.global_batch_size = p.global_batch_size;
  out.micro_batches = p.micro_batches();
  return out;
}

RunResult run_scenario(const scenarios::Scenario& scenario, const RunOptions& options) {
  const Job& job = scenario.job;
  const ShownStep shown{options.timeline, options.critical_path};
  if (job.given_times) {
    Plan plan = plans::plan_of_given_times(job);
    std::vector<StepFigures> steps = {simulate_step(job, plan, nullptr, 0, shown)};
    return measure({job, nullptr, std::move(plan), std::move(steps)}, scenario, "");
  }
  scenarios::InputFiles own;
  scenarios::InputFiles& files = options.files ? *options.files : own;
  const StrategyInfo* strategy = find_strategy(job.strategy);
  check(strategy != nullptr, "the reader lets only registered strategies pass");
  const Network network(job.cluster);
  const auto calibrated = costs::kernel_costs(files.calibration(scenario.calibration), job.cluster);
  const costs::ScaledCosts kernels(*calibrated, options.factors);
  costs::LayerCosts layers(job.model, job.parallelism, job.software, kernels, job.cluster);
  const CostContext costs{network, kernels, layers};
  const auto started = std::chrono::steady_clock::now();
  Plan plan = strategy->make()->plan(job, costs);
  const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - started;
  std::vector<StepFigures> steps;
  if (plan.pass)
    steps = simulate_pass(job, plan, network, kernels, shown);
  else
    steps = {simulate_step(job, plan, &costs, 0, shown)};
  RunResult out = measure({job, &kernels, std::move(plan), std::move(steps)}, scenario,
                          files.calibration_hash(scenario.calibration));
  out.planning = Seconds{planning.count()};
  return out;
}

}  // namespace mllmsim::results
