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
  Communication(StepBuilder& step, const CostContext& costs) : step_(step), costs_(costs) {}

  // Every tp rank sends this much to its peer.
  Message message(int replica, int from_rank, int to_rank, Bytes bytes_per_gpu);

  // One collective over the replicas of a pipeline rank, `bytes` on one GPU: a task per replica.
  std::vector<TaskId> add_collective(int rank, costs::CollectiveOp op, std::int64_t bytes,
                                     const CollectivePieces& pieces = {});
  // The same over these groups of GPUs: a task per replica and one of `ranks`.
  std::vector<TaskId> add_collective(const std::vector<std::vector<int>>& groups,
                                     const std::vector<int>& ranks, costs::CollectiveOp op,
                                     std::int64_t bytes, const CollectivePieces& pieces = {});

 private:
  const std::vector<LinkUse>& p2p_links(int replica, int from_rank, int to_rank);
  std::vector<LinkUse> ring_links(const std::vector<std::vector<int>>& groups, Bytes bytes);
  void occupy(std::vector<LinkUse>& links, Seconds busiest) const;
  std::vector<int> replicas_behind(int replica) const;
  std::vector<LinkUse> seen_by(int replica, std::vector<LinkUse> uses) const;

  StepBuilder& step_;
  const CostContext& costs_;
  // By device and rank it sends to; bytes of a 1-byte message.
  std::map<std::pair<std::uint32_t, int>, std::vector<LinkUse>> p2p_links_;
  // By number of groups and members of the first; bytes of a 1-TiB collective.
  std::map<std::pair<std::size_t, std::vector<int>>, std::vector<LinkUse>> ring_links_;
};

}  // namespace mllmsim::lower
