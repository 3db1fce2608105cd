#include "strategies/run/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/base/hash.hpp"
#include "strategies/step/plan_memory.hpp"

namespace mllmsim::run {
namespace {

// Everything known after the simulation of all chosen steps.
struct Run {
  const Job& job;
  const Plan& plan;
  std::vector<MeasuredStep> steps;
  FlopsPerSecond peak;

  bool costed() const { return !job.given_times; }

  std::size_t ranks() const { return plan.stages.size(); }
  std::size_t replicas() const { return plan.micro_batches.size(); }
  // A single simulated replica stands for all.
  double weight() const {
    return static_cast<double>(job.parallelism.data_parallel_size) /
           static_cast<double>(replicas());
  }
  double gpus() const { return job.parallelism.world_size(); }
  double step_count() const { return static_cast<double>(steps.size()); }
  Time span() const {
    Time sum{};
    for (const MeasuredStep& s : steps) sum += s.span;
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

void measure_state(const Run& run, StageFigures& row) {
  const step::RankState held = step::rank_state(run.job, run.plan, row.stage);
  row.parameters = held.parameters;
  row.held = held.held;
  row.optimizer_step = held.optimizer_step;
}

StageFigures stage_row(const Run& run, std::size_t rank) {
  StageFigures row;
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
  if (run.costed()) measure_state(run, row);
  const double step_share = 1 / run.step_count();
  const double share = step_share / static_cast<double>(run.replicas());
  for (const MeasuredStep& s : run.steps) {
    row.forward += s.forward[rank] * step_share;
    row.backward += s.backward[rank] * step_share;
    if (run.costed()) row.saved_activations = std::max(row.saved_activations, s.saved[rank]);
    for (std::size_t r = 0; r < run.replicas(); ++r) {
      const std::size_t d = r * run.ranks() + rank;
      row.busy += to_seconds(s.busy[d]) * share;
      for (std::size_t k = 0; k < kBubbleKinds; ++k)
        row.bubbles[k] += to_seconds(s.bubbles[d].times[k]) * share;
      row.peak_activations = std::max(row.peak_activations, s.peaks[d]);
    }
  }
  const Bytes passing = std::max(row.peak_activations, row.optimizer_step);
  row.peak_allocated = row.held.allocated() + passing;
  row.peak_memory = row.held.total() + passing;
  return row;
}

void measure_work(const Run& run, Outcome& out) {
  const double ranks =
      run.job.parallelism.tensor_model_parallel_size * run.job.parallelism.context_parallel_size;
  std::array<Time, costs::kSources> sources{};
  Time time{};
  for (const MeasuredStep& s : run.steps) {
    const double weight = run.weight() / run.step_count();
    out.model_flops += s.work.model_flops * weight;
    out.hardware_flops += s.work.kernels.flops * (ranks * weight);
    for (std::size_t i = 0; i < costs::kSources; ++i) sources[i] += s.work.kernels.by_source[i];
    time += s.work.kernels.time;
  }
  for (std::size_t i = 0; i < costs::kSources; ++i) out.source_shares[i] = sources[i] / time;
  const double available = out.iteration.value * run.gpus() * run.peak.value;
  out.mfu = out.model_flops.value / available;
  out.hfu = out.hardware_flops.value / available;
}

double gib(Bytes b) { return static_cast<double>(b.value) / (1LL << 30); }

// "activations 45.2, weights 12.1, ...", the biggest first; what rounds to nothing is left out.
std::string parts_of(const StageFigures& row) {
  std::vector<std::pair<Bytes, std::string>> parts{{row.peak_activations, "activations"}};
  for (std::size_t i = 0; i < kHoldings; ++i)
    parts.emplace_back(row.held.bytes[i], Names<Holding>::list[i]);
  std::ranges::stable_sort(parts, std::greater{}, &std::pair<Bytes, std::string>::first);
  std::string out;
  for (auto& [bytes, name] : parts) {
    if (gib(bytes) < 0.05) continue;
    std::ranges::replace(name, '_', ' ');
    out += fmt::format("{}{} {:.1f}", out.empty() ? "" : ", ", name, gib(bytes));
  }
  return out;
}

void measure_memory(const Run& run, Outcome& out) {
  out.gpu_memory = run.job.cluster.gpu_memory;
  const StageFigures* worst = nullptr;
  for (const StageFigures& row : out.stages)
    if (!worst || row.peak_memory > worst->peak_memory) worst = &row;
  out.peak_memory = worst->peak_memory;
  out.fits = out.peak_memory <= out.gpu_memory || !run.costed();
  if (out.fits) return;
  out.reason = fmt::format("stage {} needs {:.1f} GiB of {:.1f} GiB: {}", worst->stage,
                           gib(worst->peak_memory), gib(out.gpu_memory), parts_of(*worst));
}

// Rows of all steps; spans and memory of the one that is shown.
void take_rows(Run& run, Outcome& out) {
  for (MeasuredStep& s : run.steps) {
    out.steps.insert(out.steps.end(), s.replicas.begin(), s.replicas.end());
    if (!s.path.empty()) out.critical_path = std::move(s.path);
    if (s.spans.empty()) continue;
    out.spans = std::move(s.spans);
    out.memory = std::move(s.memory);
  }
  for (MemoryChange& row : out.memory) {
    const StageFigures& stage = out.stages[static_cast<std::size_t>(row.stage)];
    row.bytes += stage.held.total();
  }
}

std::string digest_of(const std::vector<MeasuredStep>& steps) {
  Digest digest;
  for (const MeasuredStep& s : steps) {
    digest.add(static_cast<std::uint64_t>(s.step));
    digest.add(s.digest);
  }
  return hash_text(digest.value());
}

void measure_data(const Run& run, Outcome& out) {
  double samples = 0, tokens = 0, micro_batches = 0;
  for (const StepFigures& row : out.steps) {
    samples += static_cast<double>(row.samples) * run.weight();
    tokens += static_cast<double>(row.llm_tokens) * run.weight();
    micro_batches += static_cast<double>(row.micro_batches) * run.weight();
  }
  out.samples_per_micro_batch = samples / micro_batches;
  if (!run.plan.pass) samples = static_cast<double>(run.job.parallelism.global_batch_size);
  out.samples_per_step = samples / run.step_count();
  const double seconds = to_seconds(run.span()).value;
  out.samples_per_s = samples / seconds;
  out.tokens_per_s_per_gpu = tokens / seconds / run.gpus();
  out.samples = run.job.data.samples;
  constexpr double kSecondsPerDay = 86400;
  out.gpu_days = run.gpus() * seconds * out.samples / samples / kSecondsPerDay;
  if (!run.plan.pass) return;
  out.pass_steps = run.plan.pass->steps();
  out.pad_ratio = data::pad_ratio(run.job.data.set->samples, *run.plan.pass);
  const data::DistRatio dist = data::dist_ratio(run.job.data.set->samples, *run.plan.pass);
  out.dist_ratio_tiles = dist.tiles;
  out.dist_ratio_tokens = dist.tokens;
}

}  // namespace

Outcome measure(const Job& job, const Plan& plan, std::vector<MeasuredStep> steps,
                FlopsPerSecond peak) {
  Run run{job, plan, std::move(steps), peak};
  Outcome out;
  out.kernel_by_kernel = plan.encoders || job.granularity == Granularity::kernel;
  out.iteration = to_seconds(run.span()) / run.step_count();
  out.simulated_steps = static_cast<std::int64_t>(run.steps.size());
  out.event_digest = digest_of(run.steps);
  out.facts = plan.facts;
  for (std::size_t rank = 0; rank < run.ranks(); ++rank) {
    out.stages.push_back(stage_row(run, rank));
    for (std::size_t k = 0; k < kBubbleKinds; ++k)
      out.bubble_shares[k] +=
          out.stages.back().bubbles[k] / out.iteration / static_cast<double>(run.ranks());
  }
  if (run.costed()) {
    out.parameters = parameters(job.model);
    measure_work(run, out);
  }
  measure_memory(run, out);
  take_rows(run, out);
  measure_data(run, out);
  return out;
}

}  // namespace mllmsim::run
