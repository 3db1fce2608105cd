#include "strategies/run/known_replays.hpp"

#include <algorithm>

namespace mllmsim::run {

std::vector<ReplayedRank> KnownReplays::of(
    const Job& job, const Plan& plan, const std::function<std::vector<ReplayedRank>()>& replay) {
  if (plan.pass || plan.encoders || plan.micro_batches.size() > 1) return replay();
  Key key{job.recompute, plan.schedule, plan.micro_batch_group, plan.stages, replayed_of(plan, 0)};
  const auto found = std::ranges::find(known_, key, &Known::key);
  if (found != known_.end()) return found->ranks;
  Known added{std::move(key), replay()};
  if (known_.size() < kKept) return known_.emplace_back(std::move(added)).ranks;
  Known& place = known_[oldest_++ % kKept];
  place = std::move(added);
  return place.ranks;
}

}  // namespace mllmsim::run
