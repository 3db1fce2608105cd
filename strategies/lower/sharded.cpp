// zero_stage 3: every GPU holds 1/dp of each layer. Each pass gathers a layer's parameters just
// before its use and backwards scatter its gradients, all replicas together, for every micro-batch.
//
// The gather of a layer may start when the layer zero3_prefetch_layers + 1 before it is done, which
// bounds how many gathered layers are in memory. Gathers and scatters of a device share its dp
// stream, in the order they are issued. They take SMs from the layers beside them.
#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {
Time Lowering::shard_time(costs::CollectiveOp op, std::int64_t bytes) {
  const auto [at, added] = shard_times_.try_emplace({op, bytes});
  if (added && bytes > 0) {
    const costs::GroupShape shape = shape_of(dp_groups(job_.parallelism, 0), job_.cluster);
    at->second = to_time(costs_->kernels.collective({op, Bytes{bytes}, shape}).time);
  }
  return at->second;
}

// A layer runs beside the gather of a neighbour's parameters, backwards beside the scatter of its
// gradients as well; neighbours are taken to be alike. While those last it computes at
// 1 / slowdown of its speed.
void Lowering::slow_beside_shards(DeviceId d, const Pass& pass, Segment& segment) {
  const double slowdown = costs_->kernels.gemm_slowdown_beside_collective();
  Time computing{};
  for (std::uint32_t t = segment.first.value; t <= segment.last.value; ++t) {
    const Task& task = program_.tasks()[t];
    if (Program::kind_of(task.stream) == StreamKind::compute)
      computing += task.duration - task.communication;
  }
  const auto bytes = [&](int each, bool only_trained) {
    return each * parameters_per_gpu(job_, {segment.layer}, only_trained);
  };
  Time beside = shard_time(costs::CollectiveOp::all_gather,
                           bytes(job_.software.precision.parameter_bytes, false));
  if (!pass.forward)
    beside += shard_time(costs::CollectiveOp::reduce_scatter,
                         bytes(job_.software.precision.sharded_grad_bytes_per_parameter, true));
  Task task;
  task.duration = std::min(scaled(computing, slowdown - 1), scaled(beside, 1 - 1 / slowdown));
  if (task.duration == Time{}) return;
  task.stream = Program::stream(d, StreamKind::compute);
  task.kind = pass.forward ? TaskKind::forward : TaskKind::backward;
  task.label = program_.label("slowed by dp collectives");
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  segment.last = last_kernel_[d.value] = program_.add(task);
}

void Lowering::add_sharded_layers() {
  check(ranks() == 1, "sharded parameters need a single pipeline rank");
  const auto ahead = static_cast<std::size_t>(job_.software.zero3_prefetch_layers) + 1;

  // The same sequence of layers on every replica: collectives match by position.
  std::vector<std::vector<Segment>> sequence(static_cast<std::size_t>(replicas()));
  std::vector<bool> backward;
  for (int r = 0; r < replicas(); ++r)
    for (const Pass& pass : schedules_.front())
      for (const Segment& s : tasks_of(r, 0, pass).segments) {
        sequence[static_cast<std::size_t>(r)].push_back(s);
        if (r == 0) backward.push_back(!pass.forward);
      }

  const auto gather = [&](std::size_t i) {
    const std::int64_t bytes = job_.software.precision.parameter_bytes *
                               parameters_per_gpu(job_, {sequence[0][i].layer}, false);
    const auto tasks = add_collective(0, costs::CollectiveOp::all_gather, bytes);
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      if (i >= ahead) program_.add_dependency(sequence[r][i - ahead].last, tasks[r]);
      program_.add_dependency(tasks[r], sequence[r][i].first);
      program_.add_memory(tasks[r], bytes, 0);
      program_.add_memory(sequence[r][i].last, 0, -bytes);
    }
  };
  const auto scatter = [&](std::size_t i) {
    const std::int64_t bytes = job_.software.precision.sharded_grad_bytes_per_parameter *
                               parameters_per_gpu(job_, {sequence[0][i].layer}, true);
    if (bytes == 0) return;
    const auto tasks = add_collective(0, costs::CollectiveOp::reduce_scatter, bytes);
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      program_.add_dependency(sequence[r][i].last, tasks[r]);
      program_.add_memory(sequence[r][i].first, bytes, 0);
      program_.add_memory(tasks[r], 0, -bytes);
    }
  };
  const std::size_t n = sequence.front().size();
  for (std::size_t i = 0; i < std::min(ahead, n); ++i) gather(i);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) gather(i + ahead);
    if (backward[i]) scatter(i);
  }
}

}  // namespace mllmsim::lower
