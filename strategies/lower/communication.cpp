#include "strategies/lower/communication.hpp"

#include <numeric>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/lower/groups.hpp"

namespace mllmsim::lower {
namespace {

constexpr Bytes kRingBytes{1LL << 40};  // of the collectives that routes are made for

// A single simulated replica sees its own nodes; several see all.
Network::SeenNodes seen_nodes(const StepBuilder& step) {
  if (step.replicas() > 1) return {};
  const Parallelism& p = step.job().parallelism;
  const ClusterSpec& cluster = step.job().cluster;
  Network::SeenNodes seen(static_cast<std::size_t>(cluster.nodes), false);
  for (int rank = 0; rank < step.ranks(); ++rank)
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      seen[static_cast<std::size_t>(cluster.node_of(p.rank(tp, 0, rank)))] = true;
  return seen;
}

}  // namespace

Communication::Communication(StepBuilder& step, const CostContext& costs)
    : step_(step),
      costs_(costs),
      seen_(seen_nodes(step)),
      p2p_routes_(std::size_t{step.program().devices()} * static_cast<std::size_t>(step.ranks())) {}

Message Communication::message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu) {
  const Parallelism& p = step_.job().parallelism;
  const ClusterSpec& cluster = step_.job().cluster;
  const bool same_node = cluster.domain_of(p.rank(0, replica, from_rank)) ==
                         cluster.domain_of(p.rank(0, replica, to_rank));
  Message message;
  // Others on the same NIC are not part of this time: the simulation shares links.
  const auto [known, added] = p2p_times_.try_emplace({bytes_per_gpu, same_node});
  if (added)
    known->second = to_time(costs_.kernels.point_to_point({bytes_per_gpu, same_node, 1}).time);
  message.time = known->second;
  message.route = p2p_route(replica, from_rank, to_rank);
  message.factor = static_cast<double>(bytes_per_gpu.value);
  return message;
}

RouteId Communication::p2p_route(int replica, int from_rank, int to_rank) {
  std::optional<RouteId>& known = p2p_routes_[std::size_t{step_.device(replica, from_rank).value} *
                                                  static_cast<std::size_t>(step_.ranks()) +
                                              static_cast<std::size_t>(to_rank)];
  if (known) return *known;
  const Parallelism& p = step_.job().parallelism;
  std::vector<std::pair<int, int>> pairs;
  for (int r : replicas_behind(replica))
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      pairs.emplace_back(p.rank(tp, r, from_rank), p.rank(tp, r, to_rank));
  known = step_.program().add_route(costs_.network.messages(pairs, Bytes{1}, seen_));
  return *known;
}

std::vector<TaskId> Communication::add_collective(int rank, costs::CollectiveOp op,
                                                  std::int64_t bytes) {
  return add_collective(dp_groups(step_.job().parallelism, rank), {rank}, op, bytes);
}

std::vector<TaskId> Communication::add_collective(const std::vector<std::vector<int>>& groups,
                                                  const std::vector<int>& ranks,
                                                  costs::CollectiveOp op, std::int64_t bytes) {
  Program& program = step_.program();
  const costs::GroupShape shape = shape_of(groups, step_.job().cluster);
  const Bytes sent = sent_by_each(op, Bytes{bytes}, shape.ranks);
  Task task;
  task.duration = to_time(costs_.kernels.collective({op, Bytes{bytes}, shape}).time);
  task.bytes = sent;
  task.kind =
      op == costs::CollectiveOp::all_gather ? TaskKind::dp_all_gather : TaskKind::dp_reduce_scatter;
  task.label = program.label(op == costs::CollectiveOp::all_gather   ? "dp all-gather"
                             : op == costs::CollectiveOp::all_reduce ? "dp all-reduce"
                                                                     : "dp reduce-scatter");
  task.transfer = program.add_transfer(ring_route(groups), sent / kRingBytes);
  std::vector<TaskId> tasks;
  for (int r = 0; r < step_.replicas(); ++r)
    for (int rank : ranks) {
      task.stream = Program::stream(step_.device(r, rank), StreamKind::dp);
      tasks.push_back(program.add(task));
    }
  return tasks;
}

// Buckets of parameters go round the same rings.
RouteId Communication::ring_route(const std::vector<std::vector<int>>& groups) {
  const auto [known, added] = ring_routes_.try_emplace({groups.size(), groups.front()});
  if (!added) return known->second;
  known->second = step_.program().add_route(costs_.network.rings(groups, kRingBytes, seen_));
  return known->second;
}

// Those whose GPUs a simulated replica stands for.
std::vector<int> Communication::replicas_behind(int replica) const {
  if (step_.replicas() > 1) return {replica};
  std::vector<int> all(static_cast<std::size_t>(step_.job().parallelism.data_parallel_size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace mllmsim::lower
