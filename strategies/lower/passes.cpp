// Compute and tensor-parallel tasks of each pass, in schedule order, with the memory they take and
// give back.
#include <fmt/format.h>
#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {

void Lowering::add_passes(int replica, int rank) {
  const DeviceId d = device(replica, rank);
  const auto& batches = plan_.micro_batches[static_cast<std::size_t>(replica)];
  at_replica_ = replica;
  at_rank_ = rank;
  at_pass_ = 0;
  for (const Pass& pass : schedules_[static_cast<std::size_t>(rank)]) {
    at_kernel_ = 0;
    tasks_of(replica, rank, pass) = job_.given_times
                                        ? add_given_pass(d, rank, pass)
                                        : add_pass(d, rank, pass, batches[pass.micro_batch]);
    ++at_pass_;
  }
  if (plan_.encoders) issue_encoders(replica, rank, UINT32_MAX, 0);
}

PassTasks Lowering::add_given_pass(DeviceId d, int rank, const Pass& pass) {
  const auto& times = pass.forward ? job_.given_times->forward : job_.given_times->backward;
  Task task;
  task.stream = Program::stream(d, StreamKind::compute);
  task.duration =
      to_time(times.size() == 1 ? times.front() : times[static_cast<std::size_t>(rank)]);
  task.kind = pass.forward ? TaskKind::forward : TaskKind::backward;
  task.label = program_.label(fmt::format("chunk {}", pass.chunk));
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  const TaskId id = program_.add(task);
  return {{{id, id, {}}}, {}};
}

// What a pass does before its first layer. Where the CPU waits for transfers, it prepares a forward
// while the GPU idles. And each tp rank received 1/tp of its input; without sequence parallelism
// every rank needs all of it.
TaskId Lowering::add_start(DeviceId d, int rank, const Pass& pass, const MicroBatch& mb) {
  const Parallelism& p = job_.parallelism;
  if (ranks() == 1) return {};
  Task task;
  task.stream = Program::stream(d, StreamKind::compute);
  task.label = program_.label("start of a pass");
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  TaskId first;
  const auto add = [&](TaskKind kind, Time time, Time communication) {
    if (time == Time{}) return;
    task.kind = kind;
    task.duration = time;
    task.communication = communication;
    last_kernel_[d.value] = program_.add(task);
    if (!first) first = last_kernel_[d.value];
  };
  if (pass.forward && !job_.software.overlap_p2p)
    add(TaskKind::host, to_time(job_.software.host_time_per_forward), {});
  const bool shards =
      job_.software.scatter_gather_p2p && !p.sequence_parallel && p.tensor_model_parallel_size > 1;
  if (const auto from = stage_before(rank, pass); from && shards) {
    const int here = static_cast<int>(pass.chunk) * ranks() + rank;
    const Bytes bytes = boundary(*from, here, mb);
    const Time gather = bytes.value > 0 ? costs_->layers.tp_gather(bytes) : Time{};
    add(pass.forward ? TaskKind::forward : TaskKind::backward, gather, gather);
  }
  return first;
}

// Passes whose layers communicate one by one have one task per layer even at stage granularity.
bool Lowering::by_layer(int rank, const Pass& pass) const {
  if (job_.parallelism.zero_stage == 3) return true;
  if (!in_buckets(rank, static_cast<int>(pass.chunk))) return false;
  const auto last = static_cast<std::uint32_t>(micro_batches(0) - 1);
  return pass.forward ? job_.parallelism.zero_stage == 1 && job_.software.overlap_param_gather &&
                            pass.micro_batch == 0
                      : job_.software.overlap_grad_reduce && pass.micro_batch == last;
}

PassTasks Lowering::add_pass(DeviceId d, int rank, const Pass& pass, const MicroBatch& mb) {
  const Chunk& layers = chunk(rank, static_cast<int>(pass.chunk));
  PassTasks out;
  if (plan_.encoders) issue_encoders(at_replica_, at_rank_, at_pass_, 0);
  out.start = add_start(d, rank, pass, mb);
  if (granularity_ == Granularity::stage && !by_layer(rank, pass)) {
    out.segments.push_back(add_chunk(d, layers, pass));
    return out;
  }
  const auto add = [&](const PlannedLayer& layer) {
    out.segments.push_back(granularity_ == Granularity::stage ? add_layer(d, layer, pass)
                                                              : add_kernels(d, layer, pass, mb));
    if (job_.parallelism.zero_stage == 3) slow_beside_shards(d, pass, out.segments.back());
  };
  if (pass.forward)
    std::for_each(layers.begin(), layers.end(), add);
  else
    std::for_each(layers.rbegin(), layers.rend(), add);
  return out;
}

Segment Lowering::add_compute(DeviceId d, const Pass& pass, const ChunkCost& cost,
                              std::uint32_t label) {
  const costs::KernelTotals& kernels = pass.forward ? cost.forward : cost.backward;
  Task task;
  task.duration = kernels.time;
  task.communication = kernels.communication;
  if (!pass.forward) task.recompute = cost.recompute;
  task.stream = Program::stream(d, StreamKind::compute);
  task.kind = pass.forward ? TaskKind::forward : TaskKind::backward;
  task.label = label;
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  task.memory_at_start = pass.forward ? cost.saved.value : cost.working.value;
  task.memory_at_end = pass.forward ? 0 : -cost.saved.value - cost.working.value;
  const TaskId id = program_.add(task);
  return {id, id, {}};
}

Segment Lowering::add_chunk(DeviceId d, const Chunk& layers, const Pass& pass) {
  const std::size_t pipeline = plan_.stages.size();
  const ChunkCost& cost =
      plan_costs_->chunk(d.value / pipeline, pass.micro_batch, d.value % pipeline, pass.chunk);
  return add_compute(d, pass, cost, chunk_label(layers));
}

Segment Lowering::add_layer(DeviceId d, const PlannedLayer& layer, const Pass& pass) {
  const costs::LayerTotals& t =
      plan_costs_->layer(d.value / plan_.stages.size(), pass.micro_batch, layer);
  ChunkCost cost{t.forward, t.recompute, t.saved, t.working,
                 t.recompute.time - t.recompute.communication};
  cost.backward += t.backward;
  Segment segment = add_compute(d, pass, cost, chunk_label({layer}));
  segment.layer = layer;
  return segment;
}

Segment Lowering::add_kernels(DeviceId d, const PlannedLayer& planned, const Pass& pass,
                              const MicroBatch& mb) {
  const costs::LayerCost& cost = costs_->layers.cost(planned.layer, mb, planned.recompute);
  Segment segment{{}, {}, planned};
  TaskId& previous = last_kernel_[d.value];
  const auto add = [&](const costs::TimedKernel& kernel, TaskKind kind) {
    if (plan_.encoders) issue_encoders(at_replica_, at_rank_, at_pass_, at_kernel_++);
    Task task;
    task.stream = Program::stream(d, kernel.communication ? StreamKind::tp : StreamKind::compute);
    task.duration = kernel.time;
    task.kind = kernel.communication ? TaskKind::tp_collective : kind;
    task.label = program_.label(kernel.name);
    task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
    task.chunk = static_cast<std::int16_t>(pass.chunk);
    const TaskId id = program_.add(task);
    // Kernels run one after the other; on one stream they do so by themselves.
    if (previous && program_.tasks()[previous.value].stream != task.stream)
      program_.add_dependency(previous, id);
    if (!segment.first) segment.first = id;
    segment.last = previous = id;
  };
  if (pass.forward) {
    for (const costs::TimedKernel& k : cost.forward) add(k, TaskKind::forward);
  } else {
    for (const costs::TimedKernel& k : cost.recompute) add(k, TaskKind::recompute);
    for (const costs::TimedKernel& k : cost.backward) add(k, TaskKind::backward);
  }
  if (!segment.first)  // nothing to compute here: an empty task keeps the order
    add({"nothing", false, {}, {}, {}}, pass.forward ? TaskKind::forward : TaskKind::backward);
  const std::int64_t saved = cost.saved.value, working = cost.working.value;
  program_.add_memory(segment.first, pass.forward ? saved : working, 0);
  if (!pass.forward) program_.add_memory(segment.last, 0, -saved - working);
  return segment;
}

std::uint32_t Lowering::chunk_label(const Chunk& layers) {
  if (layers.empty()) return program_.label("empty");
  const bool first_llm = is_llm(job_.model, layers.front().layer);
  const bool last_llm = is_llm(job_.model, layers.back().layer);
  return program_.label(first_llm ? "llm" : last_llm ? "encoder + llm" : "encoder");
}

}  // namespace mllmsim::lower
