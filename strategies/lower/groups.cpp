#include "strategies/lower/groups.hpp"

#include <set>

namespace mllmsim::lower {

std::vector<std::vector<int>> dp_groups(const Parallelism& p, int pipeline_rank) {
  std::vector<std::vector<int>> groups;
  for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp) {
    std::vector<int>& group = groups.emplace_back();
    for (int dp = 0; dp < p.data_parallel_size; ++dp)
      group.push_back(p.rank(tp, dp, pipeline_rank));
  }
  return groups;
}

costs::GroupShape shape_of(const std::vector<std::vector<int>>& groups,
                           const ClusterSpec& cluster) {
  std::set<int> nodes;
  for (int gpu : groups.front()) nodes.insert(cluster.node_of(gpu));
  int siblings = 0;
  for (const std::vector<int>& group : groups)
    for (int gpu : group)
      if (cluster.node_of(gpu) == *nodes.begin()) {
        ++siblings;
        break;
      }
  const bool crosses =
      *nodes.begin() / cluster.nodes_per_leaf != *nodes.rbegin() / cluster.nodes_per_leaf;
  return {static_cast<int>(groups.front().size()), static_cast<int>(nodes.size()), siblings,
          crosses};
}

Bytes sent_by_each(costs::CollectiveOp op, Bytes buffer, int ranks) {
  const double once = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return scaled(buffer, op == costs::CollectiveOp::all_reduce ? 2 * once : once);
}

}  // namespace mllmsim::lower
