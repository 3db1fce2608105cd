#include "strategies/lower/groups.hpp"
#include "cost_models/kernels/kernel_costs.hpp"

#include <algorithm>
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
  std::set<int> domains;
  for (int gpu : groups.front()) domains.insert(cluster.domain_of(gpu));
  int siblings = 0;
  for (const std::vector<int>& group : groups)
    for (int gpu : group)
      if (cluster.domain_of(gpu) == *domains.begin()) {
        ++siblings;
        break;
      }
  const auto [first, last] = std::minmax_element(groups.front().begin(), groups.front().end());
  return {static_cast<int>(groups.front().size()), static_cast<int>(domains.size()), siblings,
          cluster.leaf_of(*first) != cluster.leaf_of(*last)};
}

Bytes sent_by_each(costs::CollectiveOp op, Bytes buffer, int ranks) {
  const double once = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return scaled(buffer, op == costs::CollectiveOp::all_reduce ? 2 * once : once);
}

}  // namespace mllmsim::lower
