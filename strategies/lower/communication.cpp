#include "strategies/lower/communication.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/known_routes.hpp"

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
    for (int cp = 0; cp < p.context_parallel_size; ++cp)
      for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
        seen[static_cast<std::size_t>(cluster.node_of(p.rank(tp, 0, rank, cp)))] = true;
  return seen;
}

}  // namespace

Communication::Communication(StepBuilder& step, const CostContext& costs)
    : step_(step),
      costs_(costs),
      messages_(std::size_t{step.program().devices()} * static_cast<std::size_t>(step.ranks())) {
  costs.routes.see(seen_nodes(step));
}

Communication::KnownMessage& Communication::known_message(int replica, int from_rank, int to_rank) {
  return messages_[std::size_t{step_.device(replica, from_rank).value} *
                       static_cast<std::size_t>(step_.ranks()) +
                   static_cast<std::size_t>(to_rank)];
}

Message Communication::message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu) {
  KnownMessage& known = known_message(replica, from_rank, to_rank);
  if (!known.latest || known.bytes_per_gpu != bytes_per_gpu) {
    known.latest = new_message(replica, from_rank, to_rank, bytes_per_gpu);
    known.bytes_per_gpu = bytes_per_gpu;
  }
  return *known.latest;
}

Message Communication::new_message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu) {
  const Parallelism& p = step_.job().parallelism;
  const ClusterSpec& cluster = step_.job().cluster;
  const bool same_node = cluster.domain_of(p.rank(0, replica, from_rank)) ==
                         cluster.domain_of(p.rank(0, replica, to_rank));
  Message message;
  // Others on the same NIC are not part of this time: the simulation shares links.
  const auto [known, added] = p2p_times_.try_emplace({bytes_per_gpu, same_node});
  if (added) {
    constexpr int kMany = 1 << 20;
    known->second = {
        to_time(costs_.kernels.point_to_point({bytes_per_gpu, same_node, 1}).time),
        same_node ? Seconds{}
                  : costs_.kernels.point_to_point({bytes_per_gpu, same_node, kMany}).time / kMany};
  }
  message.time = known->second.alone;
  message.route = p2p_route(replica, from_rank, to_rank);
  message.factor = static_cast<double>(bytes_per_gpu.value);
  if (!same_node) message.factor = occupying(message.route, message.factor, known->second.of_many);
  return message;
}

// The factor with which a transfer takes the busiest link of its route for so long, or as long as
// its bytes do.
double Communication::occupying(RouteId route, double factor, Seconds busiest) {
  const auto [known, added] = busiest_links_.try_emplace(route);
  if (added)
    for (const LinkUse& use : step_.program().uses(route))
      known->second =
          std::max(known->second, use.bytes / costs_.network.link_bandwidths()[use.link.value]);
  return known->second.value > 0 ? std::max(factor, busiest / known->second) : factor;
}

RouteId Communication::p2p_route(int replica, int from_rank, int to_rank) {
  std::optional<RouteId>& known = known_message(replica, from_rank, to_rank).route;
  if (known) return *known;
  const Parallelism& p = step_.job().parallelism;
  std::vector<std::pair<int, int>> pairs;
  for (int r : replicas_behind(replica))
    for (int cp = 0; cp < p.context_parallel_size; ++cp)
      for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
        pairs.emplace_back(p.rank(tp, r, from_rank, cp), p.rank(tp, r, to_rank, cp));
  known = step_.program().add_route(costs_.routes.messages(pairs, Bytes{1}));
  return *known;
}

std::vector<TaskId> Communication::add_collective(int rank, costs::CollectiveOp op,
                                                  std::int64_t bytes,
                                                  const CollectivePieces& pieces) {
  return add_collective(dp_groups(step_.job().parallelism, rank), {rank}, op, bytes, pieces);
}

std::vector<std::vector<int>> Communication::groups_of(int rank, Among among) const {
  const Parallelism& p = step_.job().parallelism;
  const std::vector<std::vector<int>> all = dp_groups(p, rank);
  switch (among) {
    case Among::shards:
      return parts_of(all, p.shard_ranks());
    case Among::neighbours:
      return parts_of(all, p.zero_hpz_partition_size);
    case Among::copies:
      return peers_of(all, p.data_parallel_replicate_degree);
    case Among::experts:
      return expert_groups(p, rank);
  }
  return all;
}

costs::GroupShape Communication::shape(int rank, Among among) const {
  return shape_of(groups_of(rank, among), step_.job().cluster);
}

// Replicas of different groups do not wait for each other, unless one stands for all.
std::vector<TaskId> Communication::add_collective(int rank, Among among, costs::CollectiveOp op,
                                                  std::int64_t bytes,
                                                  const CollectivePieces& pieces) {
  const Parallelism& p = step_.job().parallelism;
  const std::vector<std::vector<int>> groups = groups_of(rank, among);
  // The ranks of a replica may be in several groups of experts: all wait for all.
  if (among == Among::experts) return add_collective(groups, {rank}, op, bytes, pieces);
  std::vector<TaskId> tasks;
  if (step_.replicas() == 1) {
    add_tasks(groups, {rank}, {0}, op, bytes, pieces, tasks);
    return tasks;
  }
  // By the replicas whose GPUs meet in a group.
  std::map<std::vector<int>, std::vector<std::vector<int>>> meeting;
  std::map<int, int> replica_of;
  for (int r = 0; r < step_.replicas(); ++r)
    for (const std::vector<int>& group : dp_groups(p, rank, r, r + 1))
      for (int gpu : group) replica_of[gpu] = r;
  for (const std::vector<int>& group : groups) {
    std::set<int> replicas;
    for (int gpu : group) replicas.insert(replica_of[gpu]);
    meeting[{replicas.begin(), replicas.end()}].push_back(group);
  }
  tasks.resize(static_cast<std::size_t>(step_.replicas()));
  for (const auto& [replicas, of_them] : meeting) {
    std::vector<TaskId> added;
    add_tasks(of_them, {rank}, replicas, op, bytes, pieces, added);
    for (std::size_t i = 0; i < replicas.size(); ++i)
      tasks[static_cast<std::size_t>(replicas[i])] = added[i];
  }
  return tasks;
}

std::vector<TaskId> Communication::add_collective(const std::vector<std::vector<int>>& groups,
                                                  const std::vector<int>& ranks,
                                                  costs::CollectiveOp op, std::int64_t bytes,
                                                  const CollectivePieces& pieces) {
  std::vector<int> replicas(static_cast<std::size_t>(step_.replicas()));
  std::iota(replicas.begin(), replicas.end(), 0);
  std::vector<TaskId> tasks;
  add_tasks(groups, ranks, replicas, op, bytes, pieces, tasks);
  return tasks;
}

void Communication::add_tasks(const std::vector<std::vector<int>>& groups,
                              const std::vector<int>& ranks, const std::vector<int>& replicas,
                              costs::CollectiveOp op, std::int64_t bytes,
                              const CollectivePieces& pieces, std::vector<TaskId>& tasks) {
  Program& program = step_.program();
  const costs::GroupShape shape = shape_of(groups, step_.job().cluster);
  const Bytes sent = sent_by_each(op, Bytes{bytes}, shape.ranks);
  Task task;
  const auto time = [&](std::int64_t n) {
    const Seconds one = costs_.kernels.collective({op, Bytes{n / pieces.count}, shape}).time;
    return (one + pieces.further) * static_cast<double>(pieces.count);
  };
  const Seconds alone = time(bytes);
  task.duration = to_time(alone);
  task.bytes = sent;
  task.kind =
      op == costs::CollectiveOp::all_gather ? TaskKind::dp_all_gather : TaskKind::dp_reduce_scatter;
  task.label = program.label(op == costs::CollectiveOp::all_gather   ? "dp all-gather"
                             : op == costs::CollectiveOp::all_reduce ? "dp all-reduce"
                                                                     : "dp reduce-scatter");
  const RouteId route = ring_route(groups);
  task.transfer = program.add_transfer(
      route, occupying(route, sent / kRingBytes, std::min(alone, time(2 * bytes) - alone)));
  for (int r : replicas)
    for (int rank : ranks) {
      task.stream = Program::stream(step_.device(r, rank), StreamKind::dp);
      tasks.push_back(program.add(task));
    }
}

// Buckets of parameters go round the same rings.
RouteId Communication::ring_route(const std::vector<std::vector<int>>& groups) {
  const auto [known, added] = ring_routes_.try_emplace({groups.size(), groups.front()});
  if (!added) return known->second;
  known->second = step_.program().add_route(costs_.routes.rings(groups, kRingBytes));
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
