// Messages between pipeline ranks and collectives over replicas: how long they take alone, and the
// links they load. Private to this folder.
//
// If a single replica is simulated it stands for all, which communicate at the same time: links
// carry the load of every replica, and of those only the ones that the simulated replica's own
// nodes see are kept; the others are their mirror images.
//
// A transfer does not fill a link with what it sends: protocols and gaps take their part of it. A
// link is loaded with what a transfer takes away from others, so that several at once do not use
// it better than one alone: the time that its bytes take when only their number counts, which is
// what twice as many would take longer.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cost_models/kernels/kernel.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// So many equal collectives, one after the other, in one task, each with some further time that
// needs no link.
struct CollectivePieces {
  int count = 1;
  Seconds further{};
};

class Communication {
 public:
  Communication(StepBuilder& step, const CostContext& costs);

  // Every tp rank sends this much to its peer.
  Message message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu);

  // One collective over the replicas of a pipeline rank, `bytes` on one GPU: a task per replica.
  std::vector<TaskId> add_collective(int rank, costs::CollectiveOp op, std::int64_t bytes,
                                     const CollectivePieces& pieces = {});
  // Sharded parameters: among the GPUs that share one copy, among so many neighbours of them, or
  // among those that hold the same shard of different copies. Experts: among those that hold the
  // same ones.
  enum class Among : std::uint8_t { shards, neighbours, copies, experts };
  std::vector<TaskId> add_collective(int rank, Among among, costs::CollectiveOp op,
                                     std::int64_t bytes, const CollectivePieces& pieces = {});
  // Where those groups sit.
  costs::GroupShape shape(int rank, Among among) const;
  // The same over these groups of GPUs: a task per replica and one of `ranks`.
  std::vector<TaskId> add_collective(const std::vector<std::vector<int>>& groups,
                                     const std::vector<int>& ranks, costs::CollectiveOp op,
                                     std::int64_t bytes, const CollectivePieces& pieces = {});

 private:
  struct KnownMessage {
    std::optional<RouteId> route;   // of a 1-byte message
    std::optional<Message> latest;  // asked for
    Bytes bytes_per_gpu{};          // of that
  };
  std::vector<std::vector<int>> groups_of(int rank, Among among) const;
  void add_tasks(const std::vector<std::vector<int>>& groups, const std::vector<int>& ranks,
                 const std::vector<int>& replicas, costs::CollectiveOp op, std::int64_t bytes,
                 const CollectivePieces& pieces, std::vector<TaskId>& tasks);
  Message new_message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu);
  KnownMessage& known_message(int replica, int from_rank, int to_rank);
  RouteId p2p_route(int replica, int from_rank, int to_rank);
  RouteId ring_route(const std::vector<std::vector<int>>& groups);
  double occupying(RouteId route, double factor, Seconds busiest);
  std::vector<int> replicas_behind(int replica) const;

  StepBuilder& step_;
  const CostContext& costs_;
  // A message alone may not fill a NIC. Of very many, only what they take of it counts.
  struct P2pTime {
    Time alone{};
    Seconds of_many{};  // of each; none in a node
  };
  std::map<std::pair<Bytes, bool>, P2pTime> p2p_times_;  // by size, and whether in a node
  std::vector<KnownMessage> messages_;                   // by device and rank it sends to
  std::map<RouteId, Seconds> busiest_links_;             // by route: what its busiest link takes
  // By number of groups and members of the first; of 1 TiB sent by each.
  std::map<std::pair<std::size_t, std::vector<int>>, RouteId> ring_routes_;
};

}  // namespace mllmsim::lower
