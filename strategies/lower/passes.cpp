#include "strategies/lower/passes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/data_parallel.hpp"
#include "strategies/lower/pipeline.hpp"

namespace mllmsim::lower {
namespace {

TaskKind kind_of(const Pass& pass) { return pass.forward ? TaskKind::forward : TaskKind::backward; }

const char* label_of(const Model& model, const Chunk& layers) {
  if (layers.empty()) return "empty";
  if (is_llm(model, layers.front().layer)) return "llm";
  return is_llm(model, layers.back().layer) ? "encoder + llm" : "encoder";
}

}  // namespace

void add_given_passes(StepBuilder& step, const GivenTimes& times) {
  std::vector<std::uint32_t> labels;
  for (std::uint32_t c = 0; c < step.chunks(); ++c)
    labels.push_back(step.label(fmt::format("chunk {}", c)));
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank)
      for (const Pass& pass : step.schedule(rank)) {
        Task task = step.task_of(pass, step.device(replica, rank), StreamKind::compute,
                                 kind_of(pass), labels[pass.chunk]);
        const auto& all = pass.forward ? times.forward : times.backward;
        task.duration =
            to_time(all.size() == 1 ? all.front() : all[static_cast<std::size_t>(rank)]);
        const TaskId id = step.program().add(task);
        step.tasks_of(replica, rank, pass).segments = {{id, id, {}}};
      }
}

bool by_layer(const Job& job, std::uint32_t micro_batches, int rank, const Pass& pass) {
  const Parallelism& p = job.parallelism;
  if (p.zero_stage == 3) return true;
  if (!in_buckets(p, rank, pass.chunk)) return false;
  return pass.forward
             ? p.zero_stage >= 1 && job.software.overlap_param_gather && pass.micro_batch == 0
             : job.software.overlap_grad_reduce && pass.micro_batch == micro_batches - 1;
}

Passes::Passes(StepBuilder& step, const ModelledCosts& costs, ShardedLayers& sharded,
               BeforeKernel before_kernel)
    : step_(step),
      costs_(costs),
      sharded_(sharded),
      before_kernel_(std::move(before_kernel)),
      granularity_(step.plan().encoders ? Granularity::kernel : step.job().granularity) {}

void Passes::add(int replica, int rank) {
  Issuing issuing{step_.device(replica, rank), {replica, rank}, {}, nullptr, {}};
  for (const Pass& pass : step_.schedule(rank)) {
    issuing.at.kernel = 0;
    PassTasks tasks = add_pass(issuing, pass);
    if (step_.job().software.memory.keep_stage_outputs) keep_output(issuing.at, pass, tasks);
    step_.tasks_of(replica, rank, pass) = std::move(tasks);
    ++issuing.at.pass;
  }
}

void Passes::keep_output(const Position& at, const Pass& pass, const PassTasks& tasks) {
  const Parallelism& p = step_.job().parallelism;
  const int stage = step_.stage(at.rank, pass);
  if (stage + 1 == static_cast<int>(step_.chunks()) * step_.ranks()) return;
  Bytes bytes = boundary(step_, costs_.models.layers, stage, stage + 1,
                         step_.micro_batch(at.replica, pass.micro_batch));
  if (p.sequence_parallel) bytes = scaled(bytes, 1.0 / p.tensor_model_parallel_size);
  if (pass.forward)
    step_.program().add_memory(tasks.segments.front().first, bytes.value, 0);
  else
    step_.program().add_memory(tasks.segments.back().last, 0, -bytes.value);
}

PassTasks Passes::add_pass(Issuing& issuing, const Pass& pass) {
  PassTasks out;
  issuing.cost = nullptr;
  before_kernel_(issuing.at);
  out.start = add_start(issuing, pass);
  const bool by_stage = granularity_ == Granularity::stage;
  if (by_stage && !by_layer(step_.job(), step_.micro_batches(), issuing.at.rank, pass)) {
    out.segments.push_back(add_chunk(issuing, pass));
    return out;
  }
  const Chunk& layers = step_.chunk(issuing.at.rank, pass.chunk);
  const auto add = [&](std::size_t i) {
    Segment segment =
        by_stage ? add_layer(issuing, layers, i, pass) : add_kernels(issuing, layers, i, pass);
    if (step_.job().parallelism.zero_stage == 3) {
      sharded_.slow_beside_collectives(issuing.device, pass, segment);
      sharded_.copy_buffers(issuing.device, pass, segment);
      issuing.last = segment.last;
    }
    out.segments.push_back(segment);
  };
  for (std::size_t n = 0; n < layers.size(); ++n) add(pass.forward ? n : layers.size() - 1 - n);
  return out;
}

// Where the CPU waits for transfers, it prepares a pass while the GPU idles. And each tp rank
// received 1/tp of its input; without sequence parallelism every rank needs all of it.
TaskId Passes::add_start(Issuing& issuing, const Pass& pass) {
  const Parallelism& p = step_.job().parallelism;
  const Software& software = step_.job().software;
  const int rank = issuing.at.rank;
  if (step_.ranks() == 1) return {};
  Task task = step_.task_of(pass, issuing.device, StreamKind::compute, TaskKind::host,
                            step_.label("start of a pass", ""));
  TaskId first;
  const auto add = [&](TaskKind kind, Time time, Time communication) {
    if (time == Time{}) return;
    task.kind = kind;
    task.duration = time;
    task.communication = communication;
    issuing.last = step_.program().add(task);
    if (!first) first = issuing.last;
  };
  if (!software.overlap_p2p && !software.cuda_graphs)
    add(TaskKind::host, to_time(software.host_time_per_pass), {});
  const bool shards =
      software.scatter_gather_p2p && !p.sequence_parallel && p.tensor_model_parallel_size > 1;
  if (const auto from = step_.stage_before(rank, pass); from && shards) {
    const Bytes bytes = boundary(step_, costs_.models.layers, *from, step_.stage(rank, pass),
                                 step_.micro_batch(issuing.at.replica, pass.micro_batch));
    const Time gather = gather_time(bytes);
    task.label = step_.label(label_of(step_.job().model, step_.chunk(rank, pass.chunk)), " input");
    add(kind_of(pass), gather, gather);
  }
  return first;
}

Time Passes::gather_time(Bytes bytes) {
  const auto [known, added] = gathers_.try_emplace(bytes);
  if (added && bytes.value > 0) known->second = costs_.models.layers.tp_gather(bytes);
  return known->second;
}

Segment Passes::add_chunk(const Issuing& issuing, const Pass& pass) {
  const auto replica = static_cast<std::size_t>(issuing.at.replica);
  const auto rank = static_cast<std::size_t>(issuing.at.rank);
  return add_compute(issuing, pass, costs_.plan.chunk(replica, pass.micro_batch, rank, pass.chunk),
                     step_.chunk(issuing.at.rank, pass.chunk));
}

const costs::LayerTotals& Passes::totals(const Issuing& issuing, const PlannedLayer& layer,
                                         const Pass& pass) const {
  return costs_.plan.layer(static_cast<std::size_t>(issuing.at.replica), pass.micro_batch, layer);
}

Passes::Deltas Passes::deltas(const Issuing& issuing, const Chunk& layers, std::size_t i,
                              const Pass& pass, Bytes saved, Bytes working) const {
  const auto [first, last] = recompute_unit(layers, i);
  if (pass.forward) return {i == first ? saved.value : 0, 0};
  if (first == last) return {working.value, -saved.value - working.value};
  Bytes kept{}, back{};
  for (std::size_t j = first; j <= last; ++j) {
    const costs::LayerTotals& t = totals(issuing, layers[j], pass);
    if (j == first) kept = t.saved;
    back += t.recomputed + (j == first ? Bytes{} : t.saved);
    if (j == last) back += t.working - t.recomputed;
  }
  return {i == last ? back.value : 0, i == first ? -kept.value - back.value : 0};
}

Segment Passes::add_layer(const Issuing& issuing, const Chunk& layers, std::size_t i,
                          const Pass& pass) {
  const costs::LayerTotals& t = totals(issuing, layers[i], pass);
  ChunkCost cost{t.forward, t.backward, {}, {}, {}};
  const auto [first, last] = recompute_unit(layers, i);
  for (std::size_t j = first; i == last && j <= last; ++j) {
    const costs::KernelTotals& again = totals(issuing, layers[j], pass).recompute;
    cost.backward += again;
    cost.recompute += again.time - again.communication;
  }
  Segment segment = add_compute(issuing, pass, cost, {layers[i]});
  const Deltas memory = deltas(issuing, layers, i, pass, t.saved, t.working);
  step_.program().add_memory(segment.first, memory.start, memory.end);
  segment.layer = layers[i];
  return segment;
}

// Megatron's combined schedule runs a backward together with the next forward, layer by layer, and
// the tokens of one are exchanged while the other computes; first forwards and last backwards are
// alone.
bool Passes::beside_another(const Position& at) const {
  if (!step_.job().software.overlap_moe_expert_parallel_comm) return false;
  const std::vector<Pass>& schedule = step_.schedule(at.rank);
  if (schedule[at.pass].forward) return at.pass > 0 && !schedule[at.pass - 1].forward;
  return at.pass + 1 < schedule.size() && schedule[at.pass + 1].forward;
}

Segment Passes::add_compute(const Issuing& issuing, const Pass& pass, const ChunkCost& cost,
                            const Chunk& layers) {
  const costs::KernelTotals& kernels = pass.forward ? cost.forward : cost.backward;
  Task task = step_.task_of(pass, issuing.device, StreamKind::compute, kind_of(pass),
                            step_.label(label_of(step_.job().model, layers), ""));
  const Time hidden = beside_another(issuing.at) ? kernels.beside_other_pass : Time{};
  task.duration = kernels.time - hidden;
  task.communication = kernels.communication - hidden;
  if (!pass.forward) task.recompute = cost.recompute;
  task.memory_at_start = pass.forward ? cost.saved.value : cost.working.value;
  task.memory_at_end = pass.forward ? 0 : -cost.saved.value - cost.working.value;
  const TaskId id = step_.program().add(task);
  return {id, id, {}};
}

// A collective that kernels of others run beside progresses at 1 / slowdown while they do, as they
// do themselves: the next kernel waits for so much longer.
void Passes::hold_up(Issuing& issuing, const Pass& pass, Time beside) {
  if (beside == Time{} || !issuing.last) return;
  const Task& collective = step_.program().tasks()[issuing.last.value];
  if (collective.kind != TaskKind::tp_collective) return;
  const double slowdown = costs_.models.kernels.gemm_slowdown_beside_collective();
  Task task = step_.task_of(pass, issuing.device, StreamKind::tp, TaskKind::tp_collective,
                            step_.label("llm tp collective beside an encoder"));
  task.duration =
      std::min(scaled(beside, 1 - 1 / slowdown), scaled(collective.duration, slowdown - 1));
  issuing.last = step_.add_after(issuing.last, task);
}

// Most blocks of a chunk are like the one before: only the first is looked up.
const costs::LayerCost& Passes::kernels(Issuing& issuing, const PlannedLayer& planned,
                                        const Pass& pass) {
  costs::LayerCosts& layers = costs_.models.layers;
  if (!issuing.cost || !alike(layers, issuing.cost_of, planned)) {
    issuing.cost = &layers.cost(
        planned.layer, step_.micro_batch(issuing.at.replica, pass.micro_batch), planned.recompute);
    issuing.cost_of = planned;
  }
  return *issuing.cost;
}

Segment Passes::add_kernels(Issuing& issuing, const Chunk& layers, std::size_t i,
                            const Pass& pass) {
  const PlannedLayer& planned = layers[i];
  Segment segment{{}, {}, planned};
  const char* part = is_llm(step_.job().model, planned.layer) ? "llm " : "encoder ";
  const bool beside = beside_another(issuing.at);
  const auto add = [&](const costs::TimedKernel& kernel, TaskKind kind) {
    hold_up(issuing, pass, before_kernel_(issuing.at));
    ++issuing.at.kernel;
    Task task = step_.task_of(
        pass, issuing.device, kernel.communication ? StreamKind::tp : StreamKind::compute,
        kernel.communication ? TaskKind::tp_collective : kind, step_.label(part, kernel.name));
    task.duration = kernel.time - (beside ? kernel.beside_other_pass : Time{});
    segment.last = issuing.last = step_.add_after(issuing.last, task);
    if (!segment.first) segment.first = segment.last;
  };
  const auto [first, last] = recompute_unit(layers, i);
  for (std::size_t j = first; !pass.forward && i == last && j <= last; ++j)
    for (const costs::TimedKernel& k : kernels(issuing, layers[j], pass).recompute)
      add(k, TaskKind::recompute);
  const costs::LayerCost& cost = kernels(issuing, planned, pass);
  for (const costs::TimedKernel& k : pass.forward ? cost.forward : cost.backward)
    add(k, kind_of(pass));
  if (!segment.first)  // nothing to compute here: an empty task keeps the order
    add({"nothing", false, {}, {}, {}}, kind_of(pass));
  const Deltas memory = deltas(issuing, layers, i, pass, cost.saved, cost.working);
  step_.program().add_memory(segment.first, memory.start, 0);
  step_.program().add_memory(segment.last, 0, memory.end);
  return segment;
}

}  // namespace mllmsim::lower
