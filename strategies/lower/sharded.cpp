#include "strategies/lower/sharded.hpp"

#include <algorithm>
#include <array>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {
namespace {

// For each rank's tensor: a view and a copy; of gradients a view of the whole, one of the part and
// a copy.
constexpr int kOperatorsPerGather = 2, kOperatorsPerScatter = 3;

// Of a recomputed block, what its backward gathers once more: matrices with too many parameters
// between their second forward and their backward, which are twice those behind them.
struct GatheredAgain {
  double share = 0;  // of the block's parameters
  int matrices = 0;
};

GatheredAgain gathered_again(const Job& job, const PlannedLayer& planned) {
  const std::int64_t limit = job.software.zero3_max_reuse_distance;
  if (limit == 0 || planned.recompute != Recompute::full || planned.layer.kind != LayerKind::block)
    return {};
  const Transformer& t = blocks_of(job.model, planned.layer);
  const std::int64_t h = t.hidden_size, heads = t.num_attention_heads * t.head_dim,
                     mlp = h * t.intermediate_size;
  const std::array<std::int64_t, 4> matrices = {
      h * (heads + 2 * t.num_key_value_heads * t.head_dim), heads * h, t.gated_mlp ? 2 * mlp : mlp,
      mlp};
  GatheredAgain out;
  std::int64_t between = 0, all = 0, again = 0;
  for (auto m = matrices.rbegin(); m != matrices.rend(); ++m) {
    if (between >= limit) {
      again += *m;
      ++out.matrices;
    }
    between += 2 * *m;
    all += *m;
  }
  out.share = static_cast<double>(again) / static_cast<double>(all);
  return out;
}

}  // namespace

Time ShardedLayers::time_of(Communication::Among among, costs::CollectiveOp op,
                            std::int64_t bytes) {
  const auto [at, added] = times_.try_emplace({among, op, bytes});
  if (added && bytes > 0) {
    const int pieces = step_.job().software.zero3_collectives_per_layer;
    const costs::Collective piece{op, Bytes{bytes / pieces}, communication_.shape(0, among)};
    at->second = to_time(costs_.kernels.collective(piece).time * static_cast<double>(pieces));
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
  const Job& job = step_.job();
  using Among = Communication::Among;
  Time beside{};
  if (gathers(!pass.forward) && job.software.zero3_prefetch_layers > 0) {
    const RankParameters bytes = gathered_layer_bytes(job, segment.layer, false);
    beside = time_of(gathered_among(!pass.forward), costs::CollectiveOp::all_gather, bytes.dense);
    if (shards_experts(bytes))
      beside += time_of(Among::experts, costs::CollectiveOp::all_gather, bytes.experts);
  }
  if (!pass.forward) {
    const std::int64_t each = job.software.precision.sharded_grad_bytes_per_parameter;
    const RankParameters trained = parameters_of(job, segment.layer, true);
    const std::int64_t bytes = each * trained.dense;
    beside += time_of(Among::shards, costs::CollectiveOp::reduce_scatter, bytes);
    if (shards_experts(trained))
      beside +=
          time_of(Among::experts, costs::CollectiveOp::reduce_scatter, each * trained.experts);
    if (job.parallelism.data_parallel_replicate_degree > 1)
      beside += time_of(Among::copies, costs::CollectiveOp::all_reduce,
                        bytes / job.parallelism.shard_ranks());
  }
  lengthen(device, pass, segment, "slowed by dp collectives",
           std::min(scaled(computing, slowdown - 1), scaled(beside, 1 - 1 / slowdown)));
}

void ShardedLayers::copy_buffers(DeviceId device, const Pass& pass, Segment& segment) {
  const Job& job = step_.job();
  if (!job.software.zero3_copies) return;
  std::int64_t moved = 0;  // read and written
  if (gathers(!pass.forward)) {
    const std::int64_t bytes = gathered_layer_bytes(job, segment.layer, false).all();
    moved += 2 * (bytes + bytes / job.parallelism.shard_ranks());
  }
  if (!pass.forward)
    moved += 2LL * job.software.precision.sharded_grad_bytes_per_parameter *
             parameters_of(job, segment.layer, true).all();
  if (moved == 0) return;
  lengthen(device, pass, segment, "copies of dp buffers",
           to_time(costs_.kernels.memory_bound({costs::MemoryOp::elementwise, Bytes{moved}}).time));
}

void ShardedLayers::lengthen(DeviceId device, const Pass& pass, Segment& segment, const char* by,
                             Time duration) {
  if (duration == Time{}) return;
  Task task =
      step_.task_of(pass, device, StreamKind::compute,
                    pass.forward ? TaskKind::forward : TaskKind::backward, step_.label(by, ""));
  task.duration = duration;
  segment.last = step_.add_after(segment.last, task);
}

void ShardedLayers::add_collectives() {
  const bool shards_dense = step_.job().parallelism.gradient_ranks() > 1;
  if (!shards_dense && step_.job().parallelism.expert_data_ranks() == 1) return;
  check(step_.ranks() == 1, "sharded parameters need a single pipeline rank");
  const auto ahead = static_cast<std::size_t>(step_.job().software.zero3_prefetch_layers) + 1;
  const Precision& precision = step_.job().software.precision;
  const Software& software = step_.job().software;
  const auto in_pieces = [&](int count, int operators_per_rank) {
    CollectivePieces pieces{count, {}};
    if (software.zero3_tensor_per_rank)
      pieces.further = software.host_time_per_kernel * step_.job().cluster.host_slowdown *
                       static_cast<double>(operators_per_rank) *
                       static_cast<double>(step_.job().parallelism.data_parallel_size);
    return pieces;
  };
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

  // The backward of a forward's layer, which comes before any other micro-batch.
  const std::size_t layers = step_.tasks_of(0, 0, step_.schedule(0).front()).segments.size();
  const auto last_use = [&](std::size_t i) {
    if (gathers(true) || backward[i]) return i;
    const std::size_t begin = i / (2 * layers) * 2 * layers;
    return begin + 2 * layers - 1 - (i - begin);
  };
  const auto gathered = [&](std::size_t i, Communication::Among among, std::int64_t bytes) {
    const GatheredAgain again =
        backward[i] ? gathered_again(step_.job(), sequence[0][i].layer) : GatheredAgain{};
    const auto tasks = communication_.add_collective(
        0, among, costs::CollectiveOp::all_gather, bytes + scaled(Bytes{bytes}, again.share).value,
        in_pieces(software.zero3_collectives_per_layer + again.matrices, kOperatorsPerGather));
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      if (i >= ahead) program.add_dependency(sequence[r][i - ahead].last, tasks[r]);
      program.add_dependency(tasks[r], sequence[r][i].first);
      program.add_memory(tasks[r], bytes, 0);
      program.add_memory(sequence[r][last_use(i)].last, 0, -bytes);
    }
  };
  const auto gather = [&](std::size_t i) {
    if (!gathers(backward[i])) return;
    const RankParameters bytes = gathered_layer_bytes(step_.job(), sequence[0][i].layer, false);
    if (shards_dense) gathered(i, gathered_among(backward[i]), bytes.dense);
    if (shards_experts(bytes)) gathered(i, Communication::Among::experts, bytes.experts);
  };
  const auto scattered = [&](std::size_t i, Communication::Among among, std::int64_t bytes) {
    if (bytes == 0) return;
    const auto tasks = communication_.add_collective(
        0, among, costs::CollectiveOp::reduce_scatter, bytes,
        in_pieces(software.zero3_collectives_per_layer, kOperatorsPerScatter));
    for (std::size_t r = 0; r < tasks.size(); ++r) {
      program.add_dependency(sequence[r][i].last, tasks[r]);
      program.add_memory(sequence[r][i].first, bytes, 0);
      program.add_memory(tasks[r], 0, -bytes);
    }
    const Parallelism& p = step_.job().parallelism;
    if (p.data_parallel_replicate_degree > 1)  // behind it on the same stream
      communication_.add_collective(0, Communication::Among::copies,
                                    costs::CollectiveOp::all_reduce, bytes / p.shard_ranks());
  };
  const auto scatter = [&](std::size_t i) {
    const std::int64_t each = precision.sharded_grad_bytes_per_parameter;
    const RankParameters n = parameters_of(step_.job(), sequence[0][i].layer, true);
    if (shards_dense) scattered(i, Communication::Among::shards, each * n.dense);
    if (shards_experts(n)) scattered(i, Communication::Among::experts, each * n.experts);
  };
  const std::size_t n = sequence.front().size();
  for (std::size_t i = 0; i < std::min(ahead, n); ++i) gather(i);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) gather(i + ahead);
    if (backward[i]) scatter(i);
  }
}

}  // namespace mllmsim::lower
