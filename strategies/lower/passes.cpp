#include "strategies/lower/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/activation_offload.hpp"
#include "strategies/lower/data_parallel.hpp"
#include "strategies/lower/parameters.hpp"
#include "strategies/lower/pipeline.hpp"

namespace mllmsim::lower {
namespace {

TaskKind kind_of(const Pass& pass) { return pass.forward ? TaskKind::forward : TaskKind::backward; }

bool is_llm_block(const Model& model, const Layer& layer) {
  return is_llm(model, layer) && layer.kind == LayerKind::block;
}

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
  if (p.zero_stage == 3 || job.software.cpu_offloading_num_layers > 0) return true;
  if (!in_buckets(p, rank, pass.chunk)) return false;
  return pass.forward
             ? p.zero_stage >= 1 && job.software.overlap_param_gather && pass.micro_batch == 0
             : job.software.overlap_grad_reduce && pass.micro_batch == micro_batches - 1;
}

Passes::Passes(StepBuilder& step, const ModelledCosts& costs, ShardedLayers& sharded,
               IssuedBetween* between)
    : step_(step),
      costs_(costs),
      sharded_(sharded),
      between_(between),
      granularity_(step.plan().encoders ? Granularity::kernel : step.job().granularity),
      gradients_appear_(lower::gradients_appear(step.job(), step.micro_batches())),
      listed_(std::size_t{2} * static_cast<std::size_t>(step.replicas()) * step.micro_batches()) {}

void Passes::add(int replica, int rank) {
  Issuing issuing{step_.device(replica, rank), {replica, rank}, {}, {}, nullptr, {}};
  for (const Pass& pass : step_.schedule(rank)) {
    issuing.at.kernel = 0;
    step_.tasks_of(replica, rank, pass) = add_pass(issuing, pass);
    ++issuing.at.pass;
  }
}

Bytes Passes::kept_output(const Position& at, const Pass& pass) const {
  const Parallelism& p = step_.job().parallelism;
  const int stage = step_.stage(at.rank, pass);
  if (!step_.job().software.memory.keep_stage_outputs ||
      stage + 1 == static_cast<int>(step_.chunks()) * step_.ranks())
    return {};
  const Bytes bytes =
      boundary(step_, costs_.models.layers, stage, stage + 1, at.replica, pass.micro_batch);
  const bool split = p.sequence_parallel || step_.job().software.memory.partition_stage_outputs;
  return split ? scaled(bytes, 1.0 / p.tensor_model_parallel_size) : bytes;
}

PassTasks Passes::add_pass(Issuing& issuing, const Pass& pass) {
  PassTasks out;
  issuing.cost = nullptr;
  issue_between(issuing.at);
  cut(step_);
  out.start = add_start(issuing, pass);
  const bool by_stage = granularity_ == Granularity::stage;
  const bool layers_meet = by_layer(step_.job(), step_.micro_batches(), issuing.at.rank, pass);
  const Bytes kept = kept_output(issuing.at, pass), missing = missing_gradients(issuing.at);
  const Chunk& layers = step_.chunk(issuing.at.rank, pass.chunk);
  if (by_stage && !layers_meet) {
    out.segments.push_back(add_chunk(issuing, pass));
    step_.program().add_memory(out.segments.front().first,
                               (pass.forward ? kept.value : 0) - missing.value,
                               pass.forward ? 0 : -kept.value);
    copy_gradients(issuing, pass, layers, out.segments.front());
    return out;
  }
  const std::size_t count = layers.size();
  std::optional<ActivationOffload> offload;
  if (step_.job().software.cpu_offloading_num_layers > 0)
    offload.emplace(step_, issuing.device, pass, saved_of_blocks(issuing, layers, pass));
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = pass.forward ? n : count - 1 - n;
    // Taken with the first task of a forward, given back with the last of a backward.
    const MemoryDeltas more{(pass.forward && n == 0 ? kept.value - missing.value : 0),
                            (!pass.forward && n + 1 == count ? -kept.value : 0) +
                                made_gradients(layers[i], pass).value};
    Segment segment = by_stage ? add_layer(issuing, layers, i, pass)
                               : add_kernels(issuing, layers, i, pass, more);
    if (layers_meet) {
      copy_gradients(issuing, pass, {layers[i]}, segment);
      cut(step_);
    }
    if (step_.job().parallelism.zero_stage == 3) {
      sharded_.slow_beside_collectives(issuing.device, pass, segment);
      sharded_.copy_buffers(issuing.device, pass, segment);
      issuing.chain.last = segment.last;
    }
    if (offload && is_llm_block(step_.job().model, layers[i].layer)) {
      offload->passed(segment);
      issuing.chain.last = segment.last;
    }
    if (!step_.grouped()) {
      step_.program().add_memory(segment.first, more.start, 0);
      step_.program().add_memory(segment.last, 0, more.end);
    }
    out.segments.push_back(segment);
  }
  if (!layers_meet && count > 0) copy_gradients(issuing, pass, layers, out.segments.back());
  cut(step_);
  return out;
}

// Where the CPU waits for transfers, it prepares a pass while the GPU idles. And each tp rank
// received 1/tp of its input; without sequence parallelism every rank needs all of it.
TaskId Passes::add_start(Issuing& issuing, const Pass& pass) {
  const Parallelism& p = step_.job().parallelism;
  const Software& software = step_.job().software;
  const int rank = issuing.at.rank;
  if (step_.ranks() == 1) return {};
  const Task like = step_.task_of(pass, issuing.device, StreamKind::compute, TaskKind::host, 0);
  TaskId first;
  const auto add = [&](const Kernel& kernel) {
    if (kernel.duration == Time{}) return;
    issuing.last = kernel;
    const KernelRange row = step_.kernel_groups().add_kernels({&kernel, 1});
    const IssuedRow issued = issue(step_, issuing.chain, {row, {}, like});
    if (!first) first = issued.first;
  };
  if (!software.overlap_p2p && !software.cuda_graphs)
    add({to_time(software.host_time_per_pass * step_.job().cluster.host_slowdown),
         step_.label("start of a pass", ""), TaskKind::host});
  const bool shards =
      software.scatter_gather_p2p && !p.sequence_parallel && p.tensor_model_parallel_size > 1;
  if (const auto from = step_.stage_before(rank, pass); from && shards) {
    const Bytes bytes = boundary(step_, costs_.models.layers, *from, step_.stage(rank, pass),
                                 issuing.at.replica, pass.micro_batch);
    const Time gather = gather_time(bytes);
    const char* part = label_of(step_.job().model, step_.chunk(rank, pass.chunk));
    add({gather, step_.label(part, " input"), kind_of(pass), false, true});
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
  const Chunk& layers = step_.chunk(issuing.at.rank, pass.chunk);
  const ChunkCost& cost = costs_.plan.chunk(replica, pass.micro_batch, rank, pass.chunk);
  const Segment segment = add_compute(issuing, pass, cost, layers);
  if (gradients_appear_ && !pass.forward && pass.micro_batch == 0) {
    const MemoryDeltas more = first_gradients(issuing, pass, layers, cost);
    step_.program().add_memory(segment.first, more.start, more.end);
  }
  return segment;
}

const costs::LayerTotals& Passes::totals(const Issuing& issuing, const PlannedLayer& layer,
                                         const Pass& pass) const {
  return costs_.plan.layer(static_cast<std::size_t>(issuing.at.replica), pass.micro_batch, layer);
}

std::vector<Bytes> Passes::saved_of_blocks(const Issuing& issuing, const Chunk& layers,
                                           const Pass& pass) const {
  std::vector<Bytes> saved;
  for (const PlannedLayer& planned : layers)
    if (is_llm_block(step_.job().model, planned.layer))
      saved.push_back(totals(issuing, planned, pass).saved);
  return saved;
}

MemoryDeltas Passes::deltas(const Issuing& issuing, const Chunk& layers, std::size_t i,
                            const Pass& pass, Bytes saved, Bytes working) const {
  const auto [first, last] = recompute_unit(layers, i);
  if (pass.forward) return {i == first ? saved.value : 0, 0};
  if (first == last) return {working.value, -saved.value - working.value};
  // Held from the backward of the last to that of the first: the most that one of them needs.
  Bytes kept{}, unit{}, back{};
  for (std::size_t j = first; j <= last; ++j) {
    const costs::LayerTotals& t = totals(issuing, layers[j], pass);
    if (j == first) kept = t.saved;
    unit += t.recomputed + (j == first ? Bytes{} : t.saved);
    back = std::max(back, unit + t.working - t.recomputed);
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
  const MemoryDeltas memory = deltas(issuing, layers, i, pass, t.saved, t.working);
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
  if (beside == Time{} || !issuing.chain.last || !issuing.last.tp) return;
  const double slowdown = costs_.models.kernels.gemm_slowdown_beside_collective();
  Kernel longer{
      std::min(scaled(beside, 1 - 1 / slowdown), scaled(issuing.last.duration, slowdown - 1)),
      step_.label("llm tp collective beside an encoder", ""), TaskKind::tp_collective, true};
  const Task like = step_.task_of(pass, issuing.device, StreamKind::tp, TaskKind::tp_collective, 0);
  issue(step_, issuing.chain, {step_.kernel_groups().add_kernels({&longer, 1}), {}, like});
}

// And collectives of others take SMs from the kernels that are issued next.
void Passes::slow_down(Issuing& issuing, const Pass& pass, Time beside, KernelRange kernels) {
  if (beside == Time{}) return;
  const double slowdown = costs_.models.kernels.gemm_slowdown_beside_collective();
  Time computing{};
  for (const Kernel& k : step_.kernel_groups().of(kernels))
    if (!k.tp) computing += k.duration;
  const Kernel longer{std::min(scaled(beside, 1 - 1 / slowdown), scaled(computing, slowdown - 1)),
                      step_.label("llm beside a collective of an encoder", ""), kind_of(pass)};
  if (longer.duration == Time{}) return;
  const Task like = step_.task_of(pass, issuing.device, StreamKind::compute, kind_of(pass), 0);
  issue(step_, issuing.chain, {step_.kernel_groups().add_kernels({&longer, 1}), {}, like});
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

// Blocks of all ranks are alike but for where they recompute together, and passes of one
// micro-batch but for what runs beside them.
Passes::LayerKernels Passes::layer_kernels(Issuing& issuing, const Chunk& layers, std::size_t i,
                                           const Pass& pass) {
  const auto [first, last] = recompute_unit(layers, i);
  if (step_.job().software.overlap_moe_expert_parallel_comm || (!pass.forward && first != last))
    return list_kernels(issuing, layers, i, pass);
  const std::size_t micro_batch =
      static_cast<std::size_t>(issuing.at.replica) * step_.micro_batches() + pass.micro_batch;
  std::vector<LayerKernels>& known = listed_[2 * micro_batch + (pass.forward ? 0 : 1)];
  for (const LayerKernels& listed : known)
    if (alike(costs_.models.layers, listed.of, layers[i])) return listed;
  return known.emplace_back(list_kernels(issuing, layers, i, pass));
}

// With the last of a unit, all that recomputes.
Passes::LayerKernels Passes::list_kernels(Issuing& issuing, const Chunk& layers, std::size_t i,
                                          const Pass& pass) {
  const auto [first, last] = recompute_unit(layers, i);
  const char* part = is_llm(step_.job().model, layers[i].layer) ? "llm " : "encoder ";
  const bool beside = beside_another(issuing.at);
  listing_.clear();
  const auto add = [&](const std::vector<costs::TimedKernel>& list, TaskKind kind) {
    for (const costs::TimedKernel& k : list)
      listing_.push_back({k.time - (beside ? k.beside_other_pass : Time{}),
                          step_.label(part, k.name),
                          k.communication ? TaskKind::tp_collective : kind, k.communication});
  };
  for (std::size_t j = first; !pass.forward && i == last && j <= last; ++j)
    add(kernels(issuing, layers[j], pass).recompute, TaskKind::recompute);
  const costs::LayerCost& cost = kernels(issuing, layers[i], pass);
  add(pass.forward ? cost.forward : cost.backward, kind_of(pass));
  if (listing_.empty())  // nothing to compute here: an empty kernel keeps the order
    listing_.push_back({{}, step_.label(part, "nothing"), kind_of(pass)});
  return {layers[i], step_.kernel_groups().add_kernels(listing_), cost.saved, cost.working};
}

Segment Passes::add_kernels(Issuing& issuing, const Chunk& layers, std::size_t i, const Pass& pass,
                            const MemoryDeltas& kept) {
  const LayerKernels listed = layer_kernels(issuing, layers, i, pass);
  const KernelRange& all = listed.kernels;
  MemoryDeltas memory = deltas(issuing, layers, i, pass, listed.saved, listed.working);
  if (step_.grouped()) memory = {memory.start + kept.start, memory.end + kept.end};
  const Task like = step_.task_of(pass, issuing.device, StreamKind::compute, kind_of(pass), 0);
  const bool meets = by_layer(step_.job(), step_.micro_batches(), issuing.at.rank, pass);
  Segment segment{{}, {}, layers[i]};
  for (std::uint32_t at = 0; at < all.count;) {
    const IssuedBetween::Beside beside = issue_between(issuing.at);
    hold_up(issuing, pass, beside.computing);
    if (at == 0 && meets) cut(step_);
    const std::uint32_t free = between_ ? between_->kernels_until_next(issuing.at) : all.count - at;
    const std::uint32_t count = std::min(all.count - at, free);
    slow_down(issuing, pass, beside.communicating, {all.first + at, count});
    const bool ends = at + count == all.count;
    const IssuedRow issued =
        issue(step_, issuing.chain,
              {{all.first + at, count}, {at == 0 ? memory.start : 0, ends ? memory.end : 0}, like});
    if (at == 0) segment.first = issued.first;
    segment.last = issued.last;
    at += count;
    issuing.at.kernel += count;
    issuing.last = step_.kernel_groups().kernel(all.first + at - 1);
  }
  return segment;
}

}  // namespace mllmsim::lower
