#include "results/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "scenarios/hash.hpp"
#include "sim/bubbles.hpp"
#include "sim/errors.hpp"
#include "sim/memory.hpp"
#include "sim/simulation.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/partition.hpp"
#include "strategies/plan_memory.hpp"
#include "strategies/strategy.hpp"

namespace mllmsim {
namespace {

// Everything known after the simulation of one step.
struct Step {
  const Job& job;
  const CostContext* costs;  // null if times are given
  Plan plan;
  Program program;
  Timeline timeline;
  std::vector<DeviceTime> times;
  std::vector<std::vector<MemoryPoint>> memory;

  int ranks() const { return static_cast<int>(plan.stages.size()); }
  int replicas() const { return static_cast<int>(plan.micro_batches.size()); }
  // A single simulated replica stands for all.
  double weight() const {
    return static_cast<double>(job.parallelism.data_parallel_size) /
           static_cast<double>(replicas());
  }
};

Step simulate_step(const Job& job, const CostContext* costs, Plan plan) {
  Program program = lower(job, plan, costs);
  const auto bandwidths = costs ? costs->network.link_bandwidths() : std::vector<BytesPerSecond>{};
  Timeline timeline = simulate(program, bandwidths);
  auto times = account(program, timeline);
  auto memory = memory_profile(program, timeline);
  return {job,
          costs,
          std::move(plan),
          std::move(program),
          std::move(timeline),
          std::move(times),
          std::move(memory)};
}

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

void measure_passes(const Step& s, int rank, StageRow& row) {
  const MicroBatch& mb = s.plan.micro_batches.front().front();
  for (const Chunk& chunk : s.plan.stages[static_cast<std::size_t>(rank)])
    for (const PlannedLayer& p : chunk) {
      const LayerCost& cost = s.costs->layers.cost(p.layer, mb, p.recompute);
      row.forward += to_seconds(totals(cost.forward).time);
      row.backward += to_seconds(totals(cost.recompute).time + totals(cost.backward).time);
    }
}

void measure_given(const Step& s, int rank, StageRow& row) {
  const GivenTimes& given = *s.job.given_times;
  const auto of = [&](const std::vector<Seconds>& times) {
    const Seconds t = times.size() == 1 ? times.front() : times[static_cast<std::size_t>(rank)];
    return t * static_cast<double>(s.job.parallelism.virtual_pipeline_stages);
  };
  row.forward = of(given.forward);
  row.backward = of(given.backward);
}

void measure_state(const Step& s, int rank, StageRow& row) {
  const RankState held = rank_state(s.job, s.plan, rank);
  row.parameters = held.parameters;
  row.weights = held.state.weights;
  row.gradients = held.state.gradients;
  row.optimizer = held.state.optimizer;
  row.reserve = s.job.software.memory_reserve;
}

StageRow stage_row(const Step& s, int rank) {
  StageRow row;
  row.stage = rank;
  row.layers = describe(s.job.model, s.plan.stages[static_cast<std::size_t>(rank)]);
  if (s.plan.encoders)
    row.layers += "; beside them " + describe(s.job.model, {s.plan.encoders->stage_of(rank)});
  if (s.costs) {
    measure_passes(s, rank, row);
    measure_state(s, rank, row);
  } else {
    measure_given(s, rank, row);
  }
  const double share = 1.0 / s.replicas();
  for (int r = 0; r < s.replicas(); ++r) {
    const auto d = static_cast<std::size_t>(r * s.ranks() + rank);
    row.busy += to_seconds(s.times[d].busy) * share;
    for (std::size_t k = 0; k < kBubbleKinds; ++k)
      row.bubbles[k] += to_seconds(s.times[d].bubbles.times[k]) * share;
    row.peak_activations = std::max(row.peak_activations, peak(s.memory[d]));
  }
  row.peak_memory =
      row.weights + row.gradients + row.optimizer + row.peak_activations + row.reserve;
  return row;
}

// Encoders beside the pipeline have their own tp.
void measure_encoder_kernels(const Step& s, RunResult& out) {
  const EncoderPlan& plan = *s.plan.encoders;
  LayerCosts costs(s.job.model, encoder_parallelism(s.job, plan), s.job.software, s.costs->kernels,
                   s.job.cluster);
  for (const auto& micro_batches : s.plan.micro_batches)
    for (const MicroBatch& mb : micro_batches)
      for (const Chunk& chunk : plan.stages)
        for (const PlannedLayer& p : chunk) {
          const LayerCost& c = costs.cost(p.layer, mb, p.recompute);
          out.model_flops += c.model_flops * s.weight();
          const Flops executed =
              totals(c.forward).flops + totals(c.recompute).flops + totals(c.backward).flops;
          out.hardware_flops += executed * (plan.tp * s.weight());
          for (const auto* kernels : {&c.forward, &c.recompute, &c.backward})
            for (const TimedKernel& k : *kernels)
              out.source_shares[static_cast<std::size_t>(k.source)] += to_seconds(k.time).value;
        }
}

void measure_kernels(const Step& s, RunResult& out) {
  const double tp = s.job.parallelism.tensor_model_parallel_size;
  for (const auto& micro_batches : s.plan.micro_batches)
    for (const MicroBatch& mb : micro_batches)
      for (const auto& chunks : s.plan.stages)
        for (const Chunk& chunk : chunks)
          for (const PlannedLayer& p : chunk) {
            const LayerCost& c = s.costs->layers.cost(p.layer, mb, p.recompute);
            out.model_flops += c.model_flops * s.weight();
            const Flops executed =
                totals(c.forward).flops + totals(c.recompute).flops + totals(c.backward).flops;
            out.hardware_flops += executed * (tp * s.weight());
            for (const auto* kernels : {&c.forward, &c.recompute, &c.backward})
              for (const TimedKernel& k : *kernels)
                out.source_shares[static_cast<std::size_t>(k.source)] += to_seconds(k.time).value;
          }
  if (s.plan.encoders) measure_encoder_kernels(s, out);
  double sum = 0;
  for (double share : out.source_shares) sum += share;
  for (double& share : out.source_shares) share /= sum;
  const double available =
      out.iteration.value * static_cast<double>(out.gpus) * s.costs->kernels.peak().value;
  out.mfu = out.model_flops.value / available;
  out.hfu = out.hardware_flops.value / available;
}

void measure_memory(const Step& s, RunResult& out) {
  out.gpu_memory = s.job.cluster.gpu_memory;
  const StageRow* worst = nullptr;
  for (const StageRow& row : out.stages)
    if (!worst || row.peak_memory > worst->peak_memory) worst = &row;
  out.peak_memory = worst->peak_memory;
  out.fits = out.peak_memory <= out.gpu_memory || !s.costs;
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

void measure_steps(const Step& s, RunResult& out) {
  for (int r = 0; r < s.replicas(); ++r) {
    StepRow row;
    row.replica = r;
    row.iteration = out.iteration;
    for (const MicroBatch& mb : s.plan.micro_batches[static_cast<std::size_t>(r)]) {
      ++row.micro_batches;
      row.samples += mb.samples;
      row.llm_tokens += mb.llm.tokens();
      for (const TokenBatch& e : mb.encoders) row.tiles += e.sequences();
    }
    Time idle{};
    for (int rank = 0; rank < s.ranks(); ++rank)
      idle += s.times[static_cast<std::size_t>(r * s.ranks() + rank)].bubbles.total();
    row.bubble_share = idle / (s.timeline.span * s.ranks());
    out.steps.push_back(row);
  }
}

void measure_spans(const Step& s, RunResult& out) {
  const auto place = [&](SpanRow& row, DeviceId d) {
    row.replica = static_cast<int>(d.value) / s.ranks();
    row.stage = static_cast<int>(d.value) % s.ranks();
  };
  out.spans.reserve(s.program.tasks().size());
  for (std::size_t t = 0; t < s.program.tasks().size(); ++t) {
    const Task& task = s.program.tasks()[t];
    SpanRow row;
    place(row, Program::device_of(task.stream));
    row.stream = name(Program::kind_of(task.stream));
    row.kind = name(task.kind);
    row.name = s.program.text(task.label);
    row.micro_batch = task.micro_batch;
    row.chunk = task.chunk;
    row.start = s.timeline.start[t];
    row.end = s.timeline.end[t];
    row.bytes = task.bytes;
    out.spans.push_back(std::move(row));
  }
  for (std::uint32_t d = 0; d < s.program.devices(); ++d)
    for (const Bubble& gap : s.times[d].gaps) {
      SpanRow row;
      place(row, {d});
      row.stream = name(StreamKind::compute);
      row.kind = "bubble";
      row.name = kBubbleNames[static_cast<std::size_t>(gap.kind)];
      row.start = gap.start;
      row.end = gap.end;
      out.spans.push_back(std::move(row));
    }
}

void measure_memory_profile(const Step& s, RunResult& out) {
  for (std::uint32_t d = 0; d < s.program.devices(); ++d) {
    const StageRow& stage = out.stages[d % static_cast<std::uint32_t>(s.ranks())];
    const Bytes constant = stage.peak_memory - stage.peak_activations;
    for (const MemoryPoint& p : s.memory[d])
      out.memory.push_back(
          {0, static_cast<int>(d) / s.ranks(), stage.stage, p.time, constant + p.bytes});
  }
}

void measure_rates(const Step& s, RunResult& out) {
  const double per_step = static_cast<double>(out.global_batch_size);
  double tokens = 0;
  for (const StepRow& row : out.steps) tokens += static_cast<double>(row.llm_tokens) * s.weight();
  out.samples_per_s = per_step / out.iteration.value;
  out.tokens_per_s_per_gpu = tokens / out.iteration.value / out.gpus;
  out.samples = s.job.data.samples;
  constexpr double kSecondsPerDay = 86400;
  out.gpu_days = out.gpus * out.iteration.value * out.samples / per_step / kSecondsPerDay;
  for (const StageRow& row : out.stages)
    for (std::size_t k = 0; k < kBubbleKinds; ++k)
      out.bubble_shares[k] += row.bubbles[k] / out.iteration / static_cast<double>(s.ranks());
}

RunResult measure(const Step& s, const Scenario& scenario, const std::string& calibration_hash) {
  const Parallelism& p = s.job.parallelism;
  RunResult out;
  out.name = s.job.name;
  out.strategy = s.job.strategy;
  out.model = s.job.model.name;
  out.cluster = s.job.cluster.name;
  out.scenario_text = scenario.text;
  out.scenario_hash = scenario.hash;
  out.calibration_hash = calibration_hash;
  out.seed = s.job.seed;
  out.granularity =
      s.job.granularity == Granularity::stage && !s.plan.encoders ? "stage" : "kernel";
  out.gpus = p.world_size();
  out.tp = p.tensor_model_parallel_size;
  out.pp = p.pipeline_model_parallel_size;
  out.vpp = p.virtual_pipeline_stages;
  out.dp = p.data_parallel_size;
  out.zero_stage = p.zero_stage;
  out.micro_batch_size = p.micro_batch_size;
  out.global_batch_size = p.global_batch_size;
  out.micro_batches = p.micro_batches();
  out.iteration = to_seconds(s.timeline.span);
  out.simulated_steps = 1;
  out.facts = s.plan.facts;
  for (int rank = 0; rank < s.ranks(); ++rank) out.stages.push_back(stage_row(s, rank));
  if (s.costs) {
    out.parameters = parameters(s.job.model);
    measure_kernels(s, out);
  }
  measure_memory(s, out);
  measure_steps(s, out);
  measure_rates(s, out);
  measure_spans(s, out);
  measure_memory_profile(s, out);
  return out;
}

std::string hash_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return hash_text(std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace

RunResult run_scenario(const Scenario& scenario) {
  const Job& job = scenario.job;
  if (job.given_times)
    return measure(simulate_step(job, nullptr, plan_of_given_times(job)), scenario, "");
  const StrategyInfo* strategy = find_strategy(job.strategy);
  check(strategy != nullptr, "the reader lets only registered strategies pass");
  const Network network(job.cluster);
  const auto kernels = read_kernel_costs(scenario.calibration, job.cluster);
  LayerCosts layers(job.model, job.parallelism, job.software, *kernels, job.cluster);
  const CostContext costs{network, *kernels, layers};
  return measure(simulate_step(job, &costs, strategy->make()->plan(job, layers)), scenario,
                 hash_of_file(scenario.calibration));
}

}  // namespace mllmsim
