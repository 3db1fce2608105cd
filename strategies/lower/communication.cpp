#include "strategies/lower/communication.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/lower/groups.hpp"

namespace mllmsim::lower {

Message Communication::message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu) {
  const Parallelism& p = step_.job().parallelism;
  const ClusterSpec& cluster = step_.job().cluster;
  const bool same_node = cluster.domain_of(p.rank(0, replica, from_rank)) ==
                         cluster.domain_of(p.rank(0, replica, to_rank));
  Message message;
  // Others on the same NIC are not part of this time: the simulation shares links.
  message.time = to_time(costs_.kernels.point_to_point({bytes_per_gpu, same_node, 1}).time);
  message.links = p2p_links(replica, from_rank, to_rank);
  for (LinkUse& use : message.links) use.bytes = Bytes{use.bytes.value * bytes_per_gpu.value};
  if (!same_node) {
    // A message alone may not fill a NIC. Of very many, only what they take of it counts.
    constexpr int kMany = 1 << 20;
    occupy(message.links,
           costs_.kernels.point_to_point({bytes_per_gpu, same_node, kMany}).time / kMany);
  }
  return message;
}

// Loads links so that the busiest is taken for so long.
void Communication::occupy(std::vector<LinkUse>& links, Seconds busiest) const {
  const auto& bandwidths = costs_.network.link_bandwidths();
  Seconds most{};
  for (const LinkUse& use : links) most = std::max(most, use.bytes / bandwidths[use.link.value]);
  if (most.value <= 0 || busiest <= most) return;
  for (LinkUse& use : links) use.bytes = scaled(use.bytes, busiest / most);
}

const std::vector<LinkUse>& Communication::p2p_links(int replica, int from_rank, int to_rank) {
  std::vector<LinkUse>& links = p2p_links_[{step_.device(replica, from_rank).value, to_rank}];
  if (!links.empty()) return links;
  const Parallelism& p = step_.job().parallelism;
  std::vector<std::pair<int, int>> pairs;
  for (int r : replicas_behind(replica))
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      pairs.emplace_back(p.rank(tp, r, from_rank), p.rank(tp, r, to_rank));
  links = seen_by(replica, costs_.network.messages(pairs, Bytes{1}));
  return links;
}

std::vector<TaskId> Communication::add_collective(int rank, costs::CollectiveOp op,
                                                  std::int64_t bytes,
                                                  const CollectivePieces& pieces) {
  return add_collective(dp_groups(step_.job().parallelism, rank), {rank}, op, bytes, pieces);
}

std::vector<TaskId> Communication::add_collective(const std::vector<std::vector<int>>& groups,
                                                  const std::vector<int>& ranks,
                                                  costs::CollectiveOp op, std::int64_t bytes,
                                                  const CollectivePieces& pieces) {
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
  std::vector<LinkUse> links = ring_links(groups, sent);
  occupy(links, std::min(alone, time(2 * bytes) - alone));
  task.transfer = program.add_transfer(links);
  std::vector<TaskId> tasks;
  for (int r = 0; r < step_.replicas(); ++r)
    for (int rank : ranks) {
      task.stream = Program::stream(step_.device(r, rank), StreamKind::dp);
      tasks.push_back(program.add(task));
    }
  return tasks;
}

// Buckets of parameters go round the same rings.
std::vector<LinkUse> Communication::ring_links(const std::vector<std::vector<int>>& groups,
                                               Bytes bytes) {
  constexpr Bytes kUnit{1LL << 40};
  auto& unit = ring_links_[{groups.size(), groups.front()}];
  if (unit.empty()) {
    unit = costs_.network.rings(groups, kUnit);
    if (step_.replicas() == 1) unit = seen_by(0, std::move(unit));
  }
  std::vector<LinkUse> links = unit;
  for (LinkUse& use : links) use.bytes = scaled(use.bytes, bytes / kUnit);
  return links;
}

// Those whose GPUs a simulated replica stands for.
std::vector<int> Communication::replicas_behind(int replica) const {
  if (step_.replicas() > 1) return {replica};
  std::vector<int> all(static_cast<std::size_t>(step_.job().parallelism.data_parallel_size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<LinkUse> Communication::seen_by(int replica, std::vector<LinkUse> uses) const {
  const Parallelism& p = step_.job().parallelism;
  std::set<int> nodes;
  for (int rank = 0; rank < step_.ranks(); ++rank)
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      nodes.insert(step_.job().cluster.node_of(p.rank(tp, replica, rank)));
  std::erase_if(uses, [&](const LinkUse& use) {
    const auto node = costs_.network.node_of(use.link);
    return node && !nodes.contains(*node);
  });
  return uses;
}

}  // namespace mllmsim::lower
