#include "strategies/run/replay_ranks.hpp"

#include <algorithm>
#include <memory>

#include "sim/base/parallel.hpp"
#include "strategies/plans/pass.hpp"

namespace mllmsim::run {
namespace {

constexpr std::size_t kStepsAtOnce = 64;

// The replica whose GPU of this rank was fullest in any step.
std::size_t fullest_replica(const std::vector<MeasuredStep>& steps, std::size_t ranks,
                            std::size_t rank) {
  std::size_t fullest = 0;
  Bytes most{};
  for (const MeasuredStep& s : steps)
    for (std::size_t d = rank; d < s.peaks.size(); d += ranks)
      if (s.peaks[d] > most) {
        most = s.peaks[d];
        fullest = d / ranks;
      }
  return fullest;
}

}  // namespace

// Micro-batches that are all alike fill a pipeline and then repeat themselves: twice its depth
// reaches whatever more would.
std::vector<MicroBatch> replayed_of(const Plan& plan, std::size_t replica) {
  std::vector<MicroBatch> out = plan.micro_batches[replica];
  const std::size_t group =
      std::max(plan.stages.size(), static_cast<std::size_t>(plan.micro_batch_group));
  out.resize(std::min(out.size(), 2 * group));
  return out;
}

std::vector<ReplayedRank> replay_ranks(const Job& job, const Plan& plan,
                                       const costs::LayerCosts& layers,
                                       const std::vector<MeasuredStep>& steps) {
  if (plan.encoders) return {};
  const std::size_t ranks = plan.stages.size();
  std::vector<std::unique_ptr<step::RankReplay>> replays(ranks);
  std::vector<ReplayedRank> out(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    replays[r] = std::make_unique<step::RankReplay>(job, plan, layers, static_cast<int>(r));
    out[r].replica = static_cast<int>(fullest_replica(steps, ranks, r));
  }
  if (!plan.pass)
    for (std::size_t r = 0; r < ranks; ++r)
      replays[r]->step(0, replayed_of(plan, static_cast<std::size_t>(out[r].replica)));
  std::vector<std::size_t> replicas;  // that are replayed
  for (const ReplayedRank& rank : out) replicas.push_back(static_cast<std::size_t>(rank.replica));
  std::ranges::sort(replicas);
  replicas.erase(std::unique(replicas.begin(), replicas.end()), replicas.end());
  // Ranks are independent, steps are not: some steps at a time, so that threads rarely meet.
  std::vector<std::vector<std::vector<MicroBatch>>> some(kStepsAtOnce);  // by step and replica
  for (std::size_t first = 0; plan.pass && first < steps.size(); first += kStepsAtOnce) {
    const std::size_t end = std::min(first + kStepsAtOnce, steps.size());
    parallel_for(end - first, [&](std::size_t i) {
      some[i].resize(static_cast<std::size_t>(plan.pass->ranks));
      for (const std::size_t r : replicas)
        plans::make_micro_batches(job, *plan.pass, steps[first + i].step, r, some[i][r]);
    });
    parallel_for(ranks, [&](std::size_t r) {
      for (std::size_t i = first; i < end; ++i)
        replays[r]->step(steps[i].step, some[i - first][static_cast<std::size_t>(out[r].replica)]);
    });
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const CachingAllocator& allocator = replays[r]->allocator();
    out[r].peak_allocated = allocator.peak_allocated();
    out[r].peak_reserved = allocator.peak_reserved();
    out[r].retries = allocator.retries();
    out[r].ran_out = replays[r]->ran_out();
  }
  return out;
}

}  // namespace mllmsim::run
