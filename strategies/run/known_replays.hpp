// Replays of the allocator (replay_ranks.hpp) of plans of one step, by all that they depend on
// beside what their jobs have in common: model, cluster, software and parallel sizes. Plans that
// differ in the number of micro-batches are often replayed alike, since few of them fill a
// pipeline. The last few are kept.
#pragma once

#include <functional>
#include <vector>

#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/run/replay_ranks.hpp"

namespace mllmsim::run {

class KnownReplays {
 public:
  // `replay` is asked if none is known.
  std::vector<ReplayedRank> of(const Job& job, const Plan& plan,
                               const std::function<std::vector<ReplayedRank>()>& replay);

 private:
  struct Key {
    RecomputePlan recompute;
    ScheduleKind schedule;
    std::int64_t micro_batch_group;
    std::vector<std::vector<Chunk>> stages;
    std::vector<MicroBatch> micro_batches;

    bool operator==(const Key&) const = default;
  };
  struct Known {
    Key key;
    std::vector<ReplayedRank> ranks;
  };
  static constexpr std::size_t kKept = 8;
  std::vector<Known> known_;
  std::size_t oldest_ = 0;
};

}  // namespace mllmsim::run
