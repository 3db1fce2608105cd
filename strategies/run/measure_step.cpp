#include "strategies/run/measure_step.hpp"

#include <algorithm>
#include <optional>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/account/event_digest.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/run/path_parts.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::run {
namespace {

// A simulated step with its accounts.
struct Accounted {
  Accounted(const Plan& of, SimulatedStep simulated)
      : plan(of), step(std::move(simulated)), times(step.device_times()), memory(step.memory()) {}

  std::size_t ranks() const { return plan.stages.size(); }

  const Plan& plan;
  SimulatedStep step;
  std::vector<DeviceTime> times;
  std::vector<std::vector<MemoryPoint>> memory;
};

void given_passes(const Job& job, MeasuredStep& out, std::size_t ranks) {
  const GivenTimes& given = *job.given_times;
  const double chunks = job.parallelism.virtual_pipeline_stages;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto of = [&](const std::vector<Seconds>& times) {
      return (times.size() == 1 ? times.front() : times[rank]) * chunks;
    };
    out.forward.push_back(of(given.forward));
    out.backward.push_back(of(given.backward));
  }
}

void measure_passes(const Plan& plan, const lower::PlanCosts& costs, MeasuredStep& out) {
  const std::size_t ranks = plan.stages.size();
  std::vector<Time> forward(ranks), backward(ranks);
  double micro_batches = 0;
  for (std::size_t r = 0; r < plan.micro_batches.size(); ++r)
    for (std::size_t m = 0; m < plan.micro_batches[r].size(); ++m, ++micro_batches)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t c = 0; c < plan.stages[rank].size(); ++c) {
          const lower::ChunkCost& cost = costs.chunk(r, m, rank, c);
          forward[rank] += cost.forward.time;
          backward[rank] += cost.backward.time;
        }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out.forward.push_back(to_seconds(forward[rank]) / micro_batches);
    out.backward.push_back(to_seconds(backward[rank]) / micro_batches);
  }
}

// Of what a forward keeps, what is in the CPU's memory when it has passed; there is one stage then.
Bytes offloaded_of(const Job& job, const Plan& plan, const lower::PlanCosts& costs,
                   std::size_t micro_batch) {
  int left = job.software.cpu_offloading_num_layers;
  Bytes sum{};
  for (const PlannedLayer& planned : plan.stages.front().front()) {
    if (left == 0) break;
    if (planned.layer.kind != LayerKind::block || !is_llm(job.model, planned.layer)) continue;
    sum += costs.layer(0, micro_batch, planned).saved;
    --left;
  }
  return sum;
}

// Forwards keep, backwards give back, in the order of the schedule; the first replica's.
void measure_saved(const Job& job, const Plan& plan, const lower::PlanCosts& costs,
                   MeasuredStep& out) {
  const int ranks = static_cast<int>(plan.stages.size()),
            chunks = static_cast<int>(plan.stages.front().size());
  const auto count = static_cast<std::int64_t>(plan.micro_batches.front().size());
  for (int rank = 0; rank < ranks; ++rank) {
    Bytes held{}, most{};
    for (const Pass& pass :
         schedule(plan.schedule, ranks, chunks, count, rank, plan.micro_batch_group)) {
      const Bytes saved =
          costs.chunk(0, pass.micro_batch, static_cast<std::size_t>(rank), pass.chunk).saved -
          offloaded_of(job, plan, costs, pass.micro_batch);
      held += pass.forward ? saved : -saved;
      most = std::max(most, held);
    }
    out.saved.push_back(most);
  }
}

void measure_replicas(const Plan& plan, MeasuredStep& out) {
  const std::size_t ranks = plan.stages.size();
  for (std::size_t r = 0; r < plan.micro_batches.size(); ++r) {
    StepFigures row;
    row.step = out.step;
    row.replica = static_cast<int>(r);
    row.iteration = to_seconds(out.span);
    for (const MicroBatch& mb : plan.micro_batches[r]) {
      ++row.micro_batches;
      row.samples += mb.samples;
      row.llm_tokens += mb.llm.tokens();
      for (const TokenBatch& e : mb.encoders) row.tiles += e.sequences();
    }
    Time idle{};
    for (std::size_t rank = 0; rank < ranks; ++rank) idle += out.bubbles[r * ranks + rank].total();
    row.bubble_share = idle / (out.span * static_cast<std::int64_t>(ranks));
    out.replicas.push_back(row);
  }
}

void measure_spans(const Accounted& s, MeasuredStep& out) {
  const auto place = [&](Span& row, DeviceId d) {
    row.step = out.step;
    row.replica = static_cast<int>(d.value / s.ranks());
    row.stage = static_cast<int>(d.value % s.ranks());
  };
  std::size_t bubbles = 0;  // a timeline may be the largest thing of a run: it must not grow
  for (const DeviceTime& device : s.times) bubbles += device.gaps.size();
  out.spans.reserve(s.step.program.tasks().size() + bubbles);
  for (std::size_t t = 0; t < s.step.program.tasks().size(); ++t) {
    const Task& task = s.step.program.tasks()[t];
    if (task.kind == TaskKind::host) continue;  // part of a bubble
    Span row;
    place(row, Program::device_of(task.stream));
    row.stream = Program::kind_of(task.stream);
    row.kind = span_kind(task.kind);
    row.name = s.step.program.text(task.label);
    row.micro_batch = task.micro_batch;
    row.chunk = task.chunk;
    row.start = s.step.timeline.start[t];
    row.end = s.step.timeline.end[t];
    row.bytes = task.bytes;
    out.spans.push_back(std::move(row));
  }
  for (std::uint32_t d = 0; d < s.step.program.devices(); ++d)
    for (const Bubble& gap : s.times[d].gaps) {
      Span row;
      place(row, {d});
      row.kind = SpanKind::bubble;
      row.bubble = gap.kind;
      row.start = gap.start;
      row.end = gap.end;
      out.spans.push_back(std::move(row));
    }
}

void measure_memory(const Accounted& s, MeasuredStep& out) {
  for (std::uint32_t d = 0; d < s.step.program.devices(); ++d)
    for (const MemoryPoint& p : s.memory[d])
      out.memory.push_back({out.step, static_cast<int>(d / s.ranks()),
                            static_cast<int>(d % s.ranks()), p.time, p.bytes, p.working});
}

// Encoders beside the pipeline have their own tp; `work` counts what one of the LLM's tp ranks
// does.
void add_encoder_work(const Job& job, const Plan& plan, const CostContext& costs,
                      lower::PlanCosts::Sum& work) {
  std::optional<costs::LayerCosts> own;
  costs::LayerCosts& layers =
      costs.encoder_layers
          ? *costs.encoder_layers
          : own.emplace(lower::encoder_layer_costs(job, *plan.encoders, costs.kernels));
  Plan beside;
  beside.stages = {plan.encoders->stages};
  beside.micro_batches = plan.micro_batches;
  const lower::PlanCosts::Sum sum = lower::PlanCosts(beside, layers).sum();
  const double share = static_cast<double>(plan.encoders->tp) /
                       static_cast<double>(job.parallelism.tensor_model_parallel_size);
  work.model_flops += sum.model_flops;
  work.kernels.flops += sum.kernels.flops * share;
  work.kernels.time += sum.kernels.time;
  for (std::size_t i = 0; i < costs::kSources; ++i)
    work.kernels.by_source[i] += sum.kernels.by_source[i];
}

MeasuredStep measured(const Plan& plan, StepAccounts accounts, std::int64_t step) {
  MeasuredStep out;
  out.step = step;
  out.span = accounts.span;
  out.digest = accounts.digest;
  out.busy = std::move(accounts.busy);
  out.bubbles = std::move(accounts.bubbles);
  out.peaks = std::move(accounts.peaks);
  measure_replicas(plan, out);
  return out;
}

MeasuredStep measured(const Accounted& s, std::int64_t step, const ShownStep& shown) {
  MeasuredStep out =
      measured(s.plan, accounts_of(s.step.program, s.step.timeline, s.times, s.memory), step);
  if (shown.critical_path)
    out.path = path_parts(s.step.program, s.step.timeline, static_cast<int>(s.ranks()));
  if (shown.timeline) {
    measure_spans(s, out);
    measure_memory(s, out);
  }
  return out;
}

// Of a step that nobody looks into.
std::optional<MeasuredStep> measured_in_groups(const Job& job, const Plan& plan,
                                               const CostContext& costs,
                                               const lower::PlanCosts& plan_costs,
                                               std::int64_t step, const ShownStep& shown) {
  if (shown.critical_path || shown.timeline) return std::nullopt;
  std::optional<StepAccounts> accounts = simulate_kernel_groups(job, plan, costs, plan_costs);
  if (!accounts) return std::nullopt;
  return measured(plan, std::move(*accounts), step);
}

}  // namespace

MeasuredStep measure_step(const Job& job, const Plan& plan, const CostContext& costs,
                          std::int64_t step, const ShownStep& shown) {
  const lower::PlanCosts plan_costs(plan, costs.layers);
  auto grouped = measured_in_groups(job, plan, costs, plan_costs, step, shown);
  MeasuredStep out =
      grouped ? std::move(*grouped)
              : measured(Accounted(plan, simulate_plan(job, plan, costs, plan_costs)), step, shown);
  measure_passes(plan, plan_costs, out);
  measure_saved(job, plan, plan_costs, out);
  out.work = plan_costs.sum();
  if (plan.encoders) add_encoder_work(job, plan, costs, out.work);
  return out;
}

MeasuredStep measure_given_step(const Job& job, const Plan& plan, const ShownStep& shown) {
  MeasuredStep out = measured(Accounted(plan, simulate_plan(job, plan)), 0, shown);
  given_passes(job, out, plan.stages.size());
  return out;
}

}  // namespace mllmsim::run
