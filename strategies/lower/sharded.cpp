#include "strategies/lower/sharded.hpp"

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {

Time ShardedLayers::time_of(costs::CollectiveOp op, std::int64_t bytes) {
  const auto [at, added] = times_.try_emplace({op, bytes});
  if (added && bytes > 0) {
    const Job& job = step_.job();
    const costs::GroupShape shape = shape_of(dp_groups(job.parallelism, 0), job.cluster);
    at->second = to_time(costs_.kernels.collective({op, Bytes{bytes}, shape}).time);
  }
  return at->second;
}

void ShardedLayers::slow_beside_collectives(DeviceId device, const Pass& pass, Segment& segment) {
  const double slowdown = costs_.kernels.gemm_slowdown_beside_collective();
  Time computing{};
  for (std::uint32_t t = segment.first.value; t <= segment.last.value; ++t) {
    const Task& task = step_.program().tasks()[t];
    if (Program::kind_of(task.stream) == StreamKind::compute)
      computing += task.duration - task.communication;
  }
  const Precision& precision = step_.job().software.precision;
  const auto bytes = [&](std::int64_t each, bool only_trained) {
    return each * parameters_per_gpu(step_.job(), segment.layer, only_trained);
  };
  Time beside = time_of(costs::CollectiveOp::all_gather, bytes(precision.parameter_bytes, false));
  if (!pass.forward)
    beside += time_of(costs::CollectiveOp::reduce_scatter,
                      bytes(precision.sharded_grad_bytes_per_parameter, true));
  const Time lost = std::min(scaled(computing, slowdown - 1), scaled(beside, 1 - 1 / slowdown));
  if (lost == Time{}) return;
  Task task = step_.task_of(pass, device, StreamKind::compute,
                            pass.forward ? TaskKind::forward : TaskKind::backward,
                            step_.label("slowed by dp collectives", ""));
  task.duration = lost;
  segment.last = step_.add_after(segment.last, task);
}

void ShardedLayers::add_collectives() {
  if (step_.job().parallelism.data_parallel_size == 1) return;
  check(step_.ranks() == 1, "sharded parameters need a single pipeline rank");
  const auto ahead = static_cast<std::size_t>(step_.job().software.zero3_prefetch_layers) + 1;
  const Precision& precision = step_.job().software.precision;
  Program& program = step_.program();

  // The same sequence of layers on every replica: collectives match by position.
  std::vector<std::vector<Segment>> sequence(static_cast<std::size_t>(step_.replicas()));
  std::vector<bool> backward;
  for (int r = 0; r < step_.replicas(); ++r)
    for (const Pass& pass : step_.schedule(0))
      for (const Segment& s : step_.tasks_of(r, 0, pass).segments) {
        sequence[static_cast<std::size_t>(r)].push_back(s);
        if (r == 0) backward.push_back(!pass.forward);
      }

  const auto gather = [&](std::size_t i) {
    const std::int64_t bytes =
        precision.parameter_bytes * parameters_per_gpu(step_.job(), sequence[0][i].layer, false);
    const auto tasks = communication_.add_collective(0, costs::CollectiveOp::all_gather, bytes);
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      if (i >= ahead) program.add_dependency(sequence[r][i - ahead].last, tasks[r]);
      program.add_dependency(tasks[r], sequence[r][i].first);
      program.add_memory(tasks[r], bytes, 0);
      program.add_memory(sequence[r][i].last, 0, -bytes);
    }
  };
  const auto scatter = [&](std::size_t i) {
    const std::int64_t bytes = precision.sharded_grad_bytes_per_parameter *
                               parameters_per_gpu(step_.job(), sequence[0][i].layer, true);
    if (bytes == 0) return;
    const auto tasks = communication_.add_collective(0, costs::CollectiveOp::reduce_scatter, bytes);
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      program.add_dependency(sequence[r][i].last, tasks[r]);
      program.add_memory(sequence[r][i].first, bytes, 0);
      program.add_memory(tasks[r], 0, -bytes);
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
