// Parameters, gradients and the optimizer, for zero_stage 0 and 1.
//
//   zero_stage 1   all-gather of bf16 parameters before the step's first use, reduce-scatter of
//                  gradients after the last backward. Overlapped, each chunk has its own: only the
//                  first chunk's all-gather and the last chunk's reduce-scatter are exposed.
//   zero_stage 0   all-reduce of gradients at the same place.
//
// Then all stages meet (gradient norm, overflow check) and each runs its optimizer.
#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {
std::int64_t Lowering::parameters_of(int rank, bool only_trained) const {
  std::int64_t n = 0;
  for (int c = 0; c < chunks(); ++c) n += parameters_per_gpu(job_, chunk(rank, c), only_trained);
  return n;
}

// One collective over the replicas of a pipeline rank: a task on each simulated one. `bytes` is on
// one GPU.
std::vector<TaskId> Lowering::add_collective(int rank, costs::CollectiveOp op, std::int64_t bytes) {
  return add_collective(dp_groups(job_.parallelism, rank), {rank}, op, bytes);
}

std::vector<TaskId> Lowering::add_collective(const std::vector<std::vector<int>>& groups,
                                             const std::vector<int>& ranks, costs::CollectiveOp op,
                                             std::int64_t bytes) {
  const costs::GroupShape shape = shape_of(groups, job_.cluster);
  const Bytes sent = sent_by_each(op, Bytes{bytes}, shape.ranks);
  Task task;
  task.duration = to_time(costs_->kernels.collective({op, Bytes{bytes}, shape}).time);
  task.bytes = sent;
  task.kind =
      op == costs::CollectiveOp::all_gather ? TaskKind::dp_all_gather : TaskKind::dp_reduce_scatter;
  task.label = program_.label(op == costs::CollectiveOp::all_gather   ? "dp all-gather"
                              : op == costs::CollectiveOp::all_reduce ? "dp all-reduce"
                                                                      : "dp reduce-scatter");
  task.transfer = program_.add_transfer(ring_links(groups, sent));
  std::vector<TaskId> tasks;
  for (int r = 0; r < replicas(); ++r)
    for (int rank : ranks) {
      task.stream = Program::stream(device(r, rank), StreamKind::dp);
      tasks.push_back(program_.add(task));
    }
  return tasks;
}

// Buckets of parameters go round the same rings.
std::vector<LinkUse> Lowering::ring_links(const std::vector<std::vector<int>>& groups,
                                          Bytes bytes) {
  constexpr Bytes kUnit{1LL << 40};
  auto& unit = ring_links_[{groups.size(), groups.front()}];
  if (unit.empty()) {
    unit = costs_->network.rings(groups, kUnit);
    if (replicas() == 1) unit = seen_by(0, std::move(unit));
  }
  std::vector<LinkUse> links = unit;
  for (LinkUse& use : links) use.bytes = scaled(use.bytes, bytes / kUnit);
  return links;
}

void Lowering::add_data_parallel() {
  const bool sharded = job_.parallelism.zero_stage == 1;
  // The encoders' parameters first: their forwards come first.
  if (plan_.encoders && sharded)
    add_encoder_collective(costs::CollectiveOp::all_gather,
                           job_.software.precision.parameter_bytes);
  add_llm_data_parallel();
  if (plan_.encoders)
    add_encoder_collective(
        sharded ? costs::CollectiveOp::reduce_scatter : costs::CollectiveOp::all_reduce,
        job_.software.precision.grad_bytes_per_parameter);
}

void Lowering::add_llm_data_parallel() {
  if (job_.parallelism.data_parallel_size == 1) return;
  if (job_.parallelism.zero_stage == 3) return add_sharded_layers();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (job_.parallelism.zero_stage == 1) add_parameter_gathers(rank);
    add_gradient_reductions(rank);
  }
}

bool Lowering::in_buckets(int rank, int c) const {
  return rank == 0 && c == 0 && job_.parallelism.data_parallel_size > 1;
}

// Runs of segments [from, to) with at least a bucket's parameters each; the last may be smaller.
std::vector<std::pair<std::size_t, std::size_t>> Lowering::buckets(const PassTasks& pass) const {
  const std::int64_t full = job_.software.bucket_parameters(job_.parallelism.data_parallel_size);
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  std::int64_t held = full;
  for (std::size_t i = 0; i < pass.segments.size(); ++i) {
    if (held >= full) {
      runs.emplace_back(i, i);
      held = 0;
    }
    runs.back().second = i + 1;
    held += parameters_per_gpu(job_, {pass.segments[i].layer}, true);
  }
  return runs;
}

namespace {

std::int64_t bucket_parameters(const Job& job, const PassTasks& pass, std::size_t from,
                               std::size_t to) {
  Chunk layers;
  for (std::size_t i = from; i < to; ++i) layers.push_back(pass.segments[i].layer);
  return parameters_per_gpu(job, layers, true);
}

}  // namespace

void Lowering::add_parameter_gathers(int rank) {
  const bool overlap = job_.software.overlap_param_gather;
  const auto gather = [&](std::int64_t n, auto&& first_task_of_replica) {
    if (n == 0) return;
    const auto tasks = add_collective(rank, costs::CollectiveOp::all_gather,
                                      job_.software.precision.parameter_bytes * n);
    for (int r = 0; r < replicas(); ++r)
      program_.add_dependency(tasks[static_cast<std::size_t>(r)], first_task_of_replica(r));
  };
  if (!overlap)
    return gather(parameters_of(rank, true), [&](int r) {
      return tasks_of(r, rank, {true, 0, 0}).first();
    });
  for (int c = 0; c < chunks(); ++c) {
    const Pass pass{true, 0, static_cast<std::uint32_t>(c)};
    if (!in_buckets(rank, c)) {
      gather(parameters_per_gpu(job_, chunk(rank, c), true),
             [&](int r) { return tasks_of(r, rank, pass).first(); });
      continue;
    }
    for (const auto& [from, to] : buckets(tasks_of(0, rank, pass)))
      gather(bucket_parameters(job_, tasks_of(0, rank, pass), from, to),
             [&, i = from](int r) { return tasks_of(r, rank, pass).segments[i].first; });
  }
}

void Lowering::add_gradient_reductions(int rank) {
  const costs::CollectiveOp op =
      job_.parallelism.zero_stage == 1 && job_.software.reduce_scatter_grads
          ? costs::CollectiveOp::reduce_scatter
          : costs::CollectiveOp::all_reduce;
  const auto last = static_cast<std::uint32_t>(micro_batches(0) - 1);
  const auto reduce = [&](std::int64_t n, auto&& last_task_of_replica) {
    if (n == 0) return;
    const auto tasks =
        add_collective(rank, op, job_.software.precision.grad_bytes_per_parameter * n);
    for (int r = 0; r < replicas(); ++r)
      program_.add_dependency(last_task_of_replica(r), tasks[static_cast<std::size_t>(r)]);
  };
  if (!job_.software.overlap_grad_reduce)
    return reduce(parameters_of(rank, true), [&](int r) {
      return tasks_of(r, rank, {false, last, 0}).last();
    });
  // Backwards leave the chunks in reverse order.
  for (int c = chunks() - 1; c >= 0; --c) {
    const Pass pass{false, last, static_cast<std::uint32_t>(c)};
    if (!in_buckets(rank, c)) {
      reduce(parameters_per_gpu(job_, chunk(rank, c), true),
             [&](int r) { return tasks_of(r, rank, pass).last(); });
      continue;
    }
    for (const auto& [from, to] : buckets(tasks_of(0, rank, pass)))
      reduce(bucket_parameters(job_, tasks_of(0, rank, pass), from, to),
             [&, i = to - 1](int r) { return tasks_of(r, rank, pass).segments[i].last; });
  }
}

void Lowering::add_optimizer() {
  const Parallelism& p = job_.parallelism;
  const costs::GroupShape all{p.world_size(), (p.world_size() - 1) / job_.cluster.gpus_per_node + 1,
                              1};
  constexpr Bytes kNorm{kFp32Bytes};
  Task sync;
  if (p.world_size() > 1)
    sync.duration =
        to_time(costs_->kernels.collective({costs::CollectiveOp::all_reduce, kNorm, all}).time);
  sync.kind = TaskKind::sync;
  sync.label = program_.label("gradient norm");
  sync.transfer = program_.add_transfer();
  for (int r = 0; r < replicas(); ++r)
    for (int rank = 0; rank < ranks(); ++rank) {
      const DeviceId d = device(r, rank);
      sync.stream = Program::stream(d, StreamKind::dp);
      const TaskId met = program_.add(sync);
      for (int c = 0; c < chunks(); ++c) {
        const auto last = static_cast<std::uint32_t>(micro_batches(r) - 1);
        program_.add_dependency(
            tasks_of(r, rank, {false, last, static_cast<std::uint32_t>(c)}).last(), met);
      }
      const auto shard = [&](std::int64_t n, int dp) {
        return p.zero_stage >= 1 ? (n + dp - 1) / dp : n;
      };
      std::int64_t own = shard(parameters_of(rank, true), p.data_parallel_size);
      if (plan_.encoders) {
        own += shard(encoder_parameters_per_gpu(job_, *plan_.encoders, rank, true),
                     encoder_parallelism(job_, *plan_.encoders).data_parallel_size);
        if (encoders_[d.value].last) program_.add_dependency(encoders_[d.value].last, met);
      }
      Task step;
      step.duration = own > 0 ? costs_->layers.optimizer_step(own) : Time{};
      step.kind = TaskKind::optimizer;
      step.label = program_.label("optimizer");
      step.stream = Program::stream(d, StreamKind::compute);
      program_.add_dependency(met, program_.add(step));
    }
}

}  // namespace mllmsim::lower
