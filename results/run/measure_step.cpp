#include "results/run/measure_step.hpp"

#include <algorithm>
#include <optional>

#include "results/run/path_rows.hpp"
#include "sim/account/memory.hpp"
#include "sim/kernel/simulation.hpp"
#include "strategies/lower/encoder_kernels.hpp"

namespace mllmsim::results {
namespace {

struct Simulated {
  const Plan& plan;
  Program program;
  Timeline timeline;
  std::vector<DeviceTime> times;
  std::vector<std::vector<MemoryPoint>> memory;

  std::size_t ranks() const { return plan.stages.size(); }
};

void measure_passes(const Job& job, const Simulated& s, const lower::PlanCosts* costs,
                    StepFigures& out) {
  const std::size_t ranks = s.ranks();
  out.forward.resize(ranks);
  out.backward.resize(ranks);
  if (!costs) {
    const GivenTimes& given = *job.given_times;
    const double chunks = job.parallelism.virtual_pipeline_stages;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto of = [&](const std::vector<Seconds>& times) {
        return (times.size() == 1 ? times.front() : times[rank]) * chunks;
      };
      out.forward[rank] = of(given.forward);
      out.backward[rank] = of(given.backward);
    }
    return;
  }
  std::vector<Time> forward(ranks), backward(ranks);
  double micro_batches = 0;
  for (std::size_t r = 0; r < s.plan.micro_batches.size(); ++r)
    for (std::size_t m = 0; m < s.plan.micro_batches[r].size(); ++m, ++micro_batches)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t c = 0; c < s.plan.stages[rank].size(); ++c) {
          const lower::ChunkCost& cost = costs->chunk(r, m, rank, c);
          forward[rank] += cost.forward.time;
          backward[rank] += cost.backward.time;
        }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out.forward[rank] = to_seconds(forward[rank]) / micro_batches;
    out.backward[rank] = to_seconds(backward[rank]) / micro_batches;
  }
}

// Forwards keep, backwards give back, in the order of the schedule; the first replica's.
void measure_saved(const Simulated& s, const lower::PlanCosts& costs, StepFigures& out) {
  const int ranks = static_cast<int>(s.ranks()),
            chunks = static_cast<int>(s.plan.stages.front().size());
  const auto count = static_cast<std::int64_t>(s.plan.micro_batches.front().size());
  for (int rank = 0; rank < ranks; ++rank) {
    Bytes held{}, most{};
    for (const Pass& pass : schedule(s.plan.schedule, ranks, chunks, count, rank)) {
      const Bytes saved =
          costs.chunk(0, pass.micro_batch, static_cast<std::size_t>(rank), pass.chunk).saved;
      held += pass.forward ? saved : -saved;
      most = std::max(most, held);
    }
    out.saved.push_back(most);
  }
}

void measure_rows(const Simulated& s, StepFigures& out) {
  for (std::size_t r = 0; r < s.plan.micro_batches.size(); ++r) {
    StepRow row;
    row.step = out.step;
    row.replica = static_cast<int>(r);
    row.iteration = to_seconds(out.span);
    for (const MicroBatch& mb : s.plan.micro_batches[r]) {
      ++row.micro_batches;
      row.samples += mb.samples;
      row.llm_tokens += mb.llm.tokens();
      for (const TokenBatch& e : mb.encoders) row.tiles += e.sequences();
    }
    Time idle{};
    for (std::size_t rank = 0; rank < s.ranks(); ++rank)
      idle += out.bubbles[r * s.ranks() + rank].total();
    row.bubble_share = idle / (out.span * static_cast<std::int64_t>(s.ranks()));
    out.rows.push_back(row);
  }
}

void measure_spans(const Simulated& s, StepFigures& out) {
  const auto place = [&](SpanRow& row, DeviceId d) {
    row.step = out.step;
    row.replica = static_cast<int>(d.value / s.ranks());
    row.stage = static_cast<int>(d.value % s.ranks());
  };
  out.spans.reserve(s.program.tasks().size());
  for (std::size_t t = 0; t < s.program.tasks().size(); ++t) {
    const Task& task = s.program.tasks()[t];
    if (task.kind == TaskKind::host) continue;  // part of a bubble
    SpanRow row;
    place(row, Program::device_of(task.stream));
    row.stream = name_of(Program::kind_of(task.stream));
    row.kind = name_of(task.kind);
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
      row.stream = name_of(StreamKind::compute);
      row.kind = "bubble";
      row.name = name_of(gap.kind);
      row.start = gap.start;
      row.end = gap.end;
      out.spans.push_back(std::move(row));
    }
}

void measure_memory(const Simulated& s, StepFigures& out) {
  for (std::uint32_t d = 0; d < s.program.devices(); ++d)
    for (const MemoryPoint& p : s.memory[d])
      out.memory.push_back({out.step, static_cast<int>(d / s.ranks()),
                            static_cast<int>(d % s.ranks()), p.time, p.bytes});
}

// Encoders beside the pipeline have their own tp; `work` counts what one of the LLM's tp ranks
// does.
void add_encoder_work(const Job& job, const Plan& plan, const CostContext& costs,
                      lower::PlanCosts::Sum& work) {
  costs::LayerCosts layers(job.model, lower::encoder_parallelism(job, *plan.encoders), job.software,
                           costs.kernels, job.cluster);
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

}  // namespace

StepFigures simulate_step(const Job& job, const Plan& plan, const CostContext* costs,
                          std::int64_t step, const ShownStep& shown) {
  std::optional<lower::PlanCosts> plan_costs;
  if (costs) plan_costs.emplace(plan, costs->layers);
  const lower::PlanCosts* known = plan_costs ? &*plan_costs : nullptr;
  Program program = lower::lower(job, plan, costs, known);
  const auto bandwidths = costs ? costs->network.link_bandwidths() : std::vector<BytesPerSecond>{};
  Timeline timeline = simulate(program, bandwidths);
  auto times = account(program, timeline);
  auto memory = memory_profile(program, timeline);
  const Simulated s{plan, std::move(program), std::move(timeline), std::move(times),
                    std::move(memory)};

  StepFigures out;
  out.step = step;
  out.span = s.timeline.span;
  for (const DeviceTime& t : s.times) {
    out.busy.push_back(t.busy);
    out.bubbles.push_back(t.bubbles);
  }
  for (const auto& profile : s.memory) out.peaks.push_back(peak(profile));
  measure_passes(job, s, known, out);
  if (known) {
    measure_saved(s, *known, out);
    out.work = known->sum();
  }
  if (plan.encoders) add_encoder_work(job, plan, *costs, out.work);
  measure_rows(s, out);
  if (shown.critical_path) out.path = path_rows(s.program, s.timeline, static_cast<int>(s.ranks()));
  if (shown.timeline) {
    measure_spans(s, out);
    measure_memory(s, out);
  }
  return out;
}

}  // namespace mllmsim::results
