#include "strategies/lower/groups.hpp"
#include "cost_models/kernels/kernel_costs.hpp"

#include <algorithm>
#include <set>

namespace mllmsim::lower {

std::vector<std::vector<int>> dp_groups(const Parallelism& p, int pipeline_rank) {
  return dp_groups(p, pipeline_rank, 0, p.data_parallel_size);
}

std::vector<std::vector<int>> dp_groups(const Parallelism& p, int pipeline_rank, int first,
                                        int last) {
  std::vector<std::vector<int>> groups;
  for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp) {
    std::vector<int>& group = groups.emplace_back();
    for (int dp = first; dp < last; ++dp)
      for (int cp = 0; cp < p.context_parallel_size; ++cp)
        group.push_back(p.rank(tp, dp, pipeline_rank, cp));
  }
  return groups;
}

std::vector<std::vector<int>> expert_groups(const Parallelism& p, int pipeline_rank) {
  const int apart = p.expert_model_parallel_size * p.expert_tensor_ranks();
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(apart));
  int in_stage = 0;
  for (int dp = 0; dp < p.data_parallel_size; ++dp)
    for (int cp = 0; cp < p.context_parallel_size; ++cp)
      for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
        groups[static_cast<std::size_t>(in_stage++ % apart)].push_back(
            p.rank(tp, dp, pipeline_rank, cp));
  return groups;
}

std::vector<std::vector<int>> parts_of(const std::vector<std::vector<int>>& groups, int size) {
  std::vector<std::vector<int>> parts;
  for (const std::vector<int>& group : groups)
    for (std::size_t i = 0; i < group.size(); i += static_cast<std::size_t>(size)) {
      const auto begin = group.begin() + static_cast<std::ptrdiff_t>(i);
      parts.emplace_back(begin, begin + size);
    }
  return parts;
}

std::vector<std::vector<int>> peers_of(const std::vector<std::vector<int>>& groups, int copies) {
  std::vector<std::vector<int>> peers;
  for (const std::vector<int>& group : groups) {
    const std::size_t part = group.size() / static_cast<std::size_t>(copies);
    for (std::size_t i = 0; i < part; ++i) {
      std::vector<int>& same = peers.emplace_back();
      for (std::size_t at = i; at < group.size(); at += part) same.push_back(group[at]);
    }
  }
  return peers;
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
