// Messages between pipeline ranks and collectives over replicas: how long they take alone, and the
// links they load. Private to this folder.
//
// If a single replica is simulated it stands for all, which communicate at the same time: links
// carry the load of every replica, and of those only the ones that the simulated replica's own
// nodes see are kept; the others are their mirror images.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cost_models/kernels/kernel.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

class Communication {
 public:
  Communication(StepBuilder& step, const CostContext& costs);

  // Every tp rank sends this much to its peer.
  Message message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu);

  // One collective over the replicas of a pipeline rank, `bytes` on one GPU: a task per replica.
  std::vector<TaskId> add_collective(int rank, costs::CollectiveOp op, std::int64_t bytes);
  // The same over these groups of GPUs: a task per replica and one of `ranks`.
  std::vector<TaskId> add_collective(const std::vector<std::vector<int>>& groups,
                                     const std::vector<int>& ranks, costs::CollectiveOp op,
                                     std::int64_t bytes);

 private:
  RouteId p2p_route(int replica, int from_rank, int to_rank);
  RouteId ring_route(const std::vector<std::vector<int>>& groups);
  std::vector<int> replicas_behind(int replica) const;

  StepBuilder& step_;
  const CostContext& costs_;
  Network::SeenNodes seen_;
  std::map<std::pair<Bytes, bool>, Time> p2p_times_;  // by size, and whether in a node
  // By device and rank it sends to; of a 1-byte message.
  std::vector<std::optional<RouteId>> p2p_routes_;
  // By number of groups and members of the first; of 1 TiB sent by each.
  std::map<std::pair<std::size_t, std::vector<int>>, RouteId> ring_routes_;
};

}  // namespace mllmsim::lower
