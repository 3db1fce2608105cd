#include "strategies/run/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/base/hash.hpp"
#include "sim/base/quantile.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/run/gradient_copies.hpp"
#include "strategies/run/useful_work.hpp"
#include "strategies/step/plan_memory.hpp"

namespace mllmsim::run {
namespace {

// Everything known after the simulation of all chosen steps.
struct Run {
  const Job& job;
  const Plan& plan;
  std::vector<MeasuredStep> steps;
  FlopsPerSecond peak;
  const std::vector<ReplayedRank>& replayed;

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
  const Layer* before = nullptr;
  for (const Chunk& chunk : chunks) {
    for (const PlannedLayer& p : chunk) {
      if (!before || before->kind != p.layer.kind || before->module != p.layer.module) {
        std::string name = layer_name(model, p.layer);
        if (runs.empty() || runs.back().first != name) runs.emplace_back(std::move(name), 0);
      }
      ++runs.back().second;
      before = &p.layer;
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
  row.optimizer_step = held.end.most();
}

// The most at once: as allocated, and as the allocator reserves it. Quantiles are over steps and
// replicas.
void measure_peaks(const Run& run, StageFigures& row) {
  const Bytes outside = row.held.total() - row.held.allocated();
  row.peak_allocated = row.held.allocated() + std::max(row.peak_activations, row.optimizer_step);
  row.peak_reserved = row.peak_allocated;
  const auto rank = static_cast<std::size_t>(row.stage);
  if (!run.replayed.empty()) {
    const ReplayedRank& replayed = run.replayed[rank];
    row.peak_reserved = std::max(row.peak_reserved, replayed.peak_reserved);
    if (replayed.ran_out)
      row.peak_reserved =
          std::max(row.peak_reserved, replayed.ran_out->reserved + replayed.ran_out->asked);
    row.allocator_retries = replayed.retries;
  }
  row.peak_memory = outside + row.peak_reserved;
  std::vector<double> peaks;
  for (const MeasuredStep& s : run.steps)
    for (std::size_t d = rank; d < s.peaks.size(); d += run.ranks())
      peaks.push_back(
          static_cast<double>((row.held.total() + std::max(s.peaks[d], row.optimizer_step)).value));
  std::sort(peaks.begin(), peaks.end());
  row.peak_memory_p50 = Bytes{std::llround(quantile_of_sorted(peaks, 0.5))};
  row.peak_memory_p99 = Bytes{std::llround(quantile_of_sorted(peaks, 0.99))};
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
  if (run.costed()) measure_peaks(run, row);
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
  if (run.plan.pass) {
    std::vector<std::int64_t> steps;
    for (const MeasuredStep& s : run.steps) steps.push_back(s.step);
    const UsefulWork useful = useful_work(run.job, *run.plan.pass, steps);
    out.model_flops = useful.flops * (run.weight() / run.step_count());
    out.tokens_per_s_per_gpu = useful.tokens / to_seconds(run.span()).value / run.gpus();
  }
  for (std::size_t i = 0; i < costs::kSources; ++i) out.source_shares[i] = sources[i] / time;
  const double available = out.iteration.value * run.gpus() * run.peak.value;
  out.mfu = out.model_flops.value / available;
  out.hfu = out.hardware_flops.value / available;
  // What is usually said: 6 FLOPs for each of the LLM's parameters and tokens, whatever they are.
  double parameters_of_llm = 0, tokens = 0;
  for (const Layer& layer : layers_of(run.job.model))
    if (is_llm(run.job.model, layer))
      parameters_of_llm += static_cast<double>(parameters(run.job.model, layer));
  for (const MeasuredStep& s : run.steps)
    for (const StepFigures& row : s.replicas)
      tokens += static_cast<double>(row.llm_tokens) * run.weight() / run.step_count();
  out.mfu_6nd = 6 * parameters_of_llm * tokens / available;
}

double gib(Bytes b) { return static_cast<double>(b.value) / (1LL << 30); }

// "activations 45.2, weights 12.1, ...", the biggest first, what is there at the peak: activations,
// or copies of gradients when those are gone. What rounds to nothing is left out.
std::string parts_of(const StageFigures& row) {
  std::vector<std::pair<Bytes, std::string>> parts;
  if (row.peak_activations >= row.optimizer_step)
    parts.emplace_back(row.peak_activations, "activations");
  else
    parts.emplace_back(row.optimizer_step, "copies of gradients at the step's end");
  parts.emplace_back(row.peak_reserved - row.peak_allocated, "kept by the allocator");
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

// "at step 12, in the forward of micro-batch 3 (8,192 tokens, 12 tiles) on replica 1: ..."
std::string where_it_ran_out(const Run& run, const ReplayedRank& replayed) {
  const step::RanOut& out = *replayed.ran_out;
  std::string at;
  if (out.micro_batch < 0) {
    at = out.forward ? "before the first step"
                     : fmt::format("in the optimizer of step {}", out.step);
  } else {
    const auto replica = static_cast<std::size_t>(replayed.replica);
    const auto position = static_cast<std::size_t>(out.micro_batch);
    const MicroBatch mb = run.plan.pass ? plans::micro_batches_of(run.job, *run.plan.pass,
                                                                  out.step)[replica][position]
                                        : run.plan.micro_batches[replica][position];
    std::int64_t tiles = 0;
    for (const TokenBatch& e : mb.encoders) tiles += e.sequences();
    at = fmt::format("at step {}, in the {} of micro-batch {} ({} tokens, {} tiles) of replica {}",
                     out.step, out.forward ? "forward" : "backward", out.micro_batch,
                     mb.llm.tokens(), tiles, replayed.replica);
  }
  return fmt::format("{}: {:.1f} GiB are allocated, {:.1f} reserved, {:.2f} more asked for", at,
                     gib(out.allocated), gib(out.reserved), gib(out.asked));
}

void measure_memory(const Run& run, Outcome& out) {
  out.gpu_memory = run.job.cluster.gpu_memory;
  const StageFigures* worst = nullptr;
  for (const StageFigures& row : out.stages)
    if (!worst || row.peak_memory > worst->peak_memory) worst = &row;
  out.peak_memory = worst->peak_memory;
  if (!run.costed()) return;
  const ReplayedRank* first = nullptr;  // to run out
  std::size_t stage = 0;
  for (std::size_t r = 0; r < run.replayed.size(); ++r) {
    const auto& ran_out = run.replayed[r].ran_out;
    if (!ran_out || (first && std::pair(first->ran_out->step, first->ran_out->micro_batch) <=
                                  std::pair(ran_out->step, ran_out->micro_batch)))
      continue;
    first = &run.replayed[r];
    stage = r;
  }
  out.fits = !first && out.peak_memory <= out.gpu_memory;
  if (out.fits) return;
  out.reason = fmt::format("stage {} needs {:.1f} GiB of {:.1f} GiB: {}", worst->stage,
                           gib(worst->peak_memory), gib(out.gpu_memory), parts_of(*worst));
  const double share = run.job.software.memory.allocator.memory_fraction;
  if (share > 0)
    out.reason += fmt::format(", of which PyTorch may take {:.1f} (per_process_memory_fraction)",
                              share * gib(out.gpu_memory));
  if (first)
    out.reason += fmt::format("; stage {} runs out {}", stage, where_it_ran_out(run, *first));
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
  if (run.costed()) {
    std::vector<step::StepEnd> ends;
    for (std::size_t rank = 0; rank < run.ranks(); ++rank)
      ends.push_back(step::rank_state(run.job, run.plan, static_cast<int>(rank)).end);
    add_copies(out.spans, ends, out.memory);
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
  if (!run.plan.pass) out.tokens_per_s_per_gpu = tokens / seconds / run.gpus();
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
                FlopsPerSecond peak, const std::vector<ReplayedRank>& replayed) {
  Run run{job, plan, std::move(steps), peak, replayed};
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
