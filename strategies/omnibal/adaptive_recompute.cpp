#include "strategies/omnibal/adaptive_recompute.hpp"

#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/step/plan_memory.hpp"
#include "strategies/step/replay.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::omnibal {
namespace {

using Place = std::pair<std::size_t, std::size_t>;  // chunk and layer in it

// The recomputed blocks of a pipeline rank, those that keep the fewest bytes first.
std::vector<Place> recomputed_blocks(const CostContext& costs, const MicroBatch& mb,
                                     const std::vector<Chunk>& chunks) {
  std::vector<std::pair<Bytes, Place>> blocks;
  for (std::size_t c = 0; c < chunks.size(); ++c)
    for (std::size_t i = 0; i < chunks[c].size(); ++i)
      if (chunks[c][i].recompute != Recompute::none)
        blocks.emplace_back(costs.layers.total(chunks[c][i].layer, mb, Recompute::none).saved,
                            Place{c, i});
  // Later layers first: their backward comes first.
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<Place> places;
  for (const auto& block : blocks) places.push_back(block.second);
  return places;
}

constexpr double kShrink = 0.95;
constexpr int kTries = 10;
constexpr std::int64_t kReplayedSteps = 32;

// Whether some steps of the pass, spread over it, get through on all ranks, with a twentieth of the
// memory to spare for the others.
bool gets_through(const Job& job, const CostContext& costs, const Plan& plan) {
  Job spare = job;
  spare.cluster.gpu_memory = scaled(job.cluster.gpu_memory, kShrink);
  if (plan.pass && spare.data.steps == 0) spare.data.steps = kReplayedSteps;
  std::vector<std::vector<std::vector<MicroBatch>>> steps{plan.micro_batches};
  if (plan.pass) {
    steps.clear();
    for (const std::int64_t step : plans::chosen_steps(spare, *plan.pass)) {
      if (static_cast<std::int64_t>(steps.size()) == kReplayedSteps) break;
      steps.push_back(plans::micro_batches_of(job, *plan.pass, step));
    }
  }
  for (std::size_t rank = 0; rank < plan.stages.size(); ++rank) {
    step::RankReplay replay(spare, plan, costs.layers, static_cast<int>(rank));
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!replay.step(static_cast<std::int64_t>(i), steps[i][i % steps[i].size()])) return false;
  }
  return true;
}

}  // namespace

std::vector<Bytes> peak_memory(const Job& job, const CostContext& costs, const MicroBatch& mb,
                               const Plan& plan) {
  Plan worst = plan;
  worst.pass = nullptr;
  // Twice the depth of the pipeline reaches its steady state.
  const std::size_t enough = 2 * plan.stages.size() * plan.stages.front().size();
  const std::size_t count = std::min(plan.micro_batches.front().size(), enough);
  worst.micro_batches = {std::vector<MicroBatch>(count, mb)};
  const auto profile = simulate_plan(job, worst, costs).memory();
  std::vector<Bytes> peaks;
  for (std::size_t rank = 0; rank < plan.stages.size(); ++rank)
    peaks.push_back(step::rank_state(job, plan, static_cast<int>(rank)).held.total() +
                    peak(profile[rank]));
  return peaks;
}

void adapt_recompute(const Job& job, const CostContext& costs, const MicroBatch& largest,
                     Bytes budget, Plan& plan) {
  if (job.recompute.in_units())
    throw UserError("", "recompute_num_layers",
                    "this strategy chooses single blocks to recompute; use 1");
  const std::size_t ranks = plan.stages.size();
  std::vector<std::vector<Place>> blocks;
  for (const auto& chunks : plan.stages)
    blocks.push_back(recomputed_blocks(costs, largest, chunks));
  const auto with = [&](const std::vector<std::size_t>& freed) {
    Plan out = plan;
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < freed[r]; ++i) {
        const auto [chunk, layer] = blocks[r][i];
        out.stages[r][chunk][layer].recompute = Recompute::none;
      }
    return out;
  };
  // Bisection on all ranks at once: what a rank keeps is its own matter.
  std::vector<std::size_t> fits(ranks, 0), tried(ranks), limit(ranks);
  for (std::size_t r = 0; r < ranks; ++r) limit[r] = blocks[r].size();
  while (fits != limit) {
    for (std::size_t r = 0; r < ranks; ++r) tried[r] = (fits[r] + limit[r] + 1) / 2;
    const std::vector<Bytes> peaks = peak_memory(job, costs, largest, with(tried));
    for (std::size_t r = 0; r < ranks; ++r) {
      if (fits[r] == limit[r]) continue;
      if (peaks[r] <= budget)
        fits[r] = tried[r];
      else
        limit[r] = tried[r] - 1;
    }
  }
  plan = with(fits);
}

void adapt_recompute_to_allocator(const Job& job, const CostContext& costs,
                                  const MicroBatch& largest, Plan& plan) {
  const Plan asked = plan;
  Bytes budget = job.cluster.gpu_memory;
  for (int i = 0; i < kTries; ++i, budget = scaled(budget, kShrink)) {
    plan = asked;
    adapt_recompute(job, costs, largest, budget, plan);
    if (gets_through(job, costs, plan)) return;
  }
  plan = asked;  // not even with all that is asked for recomputed, or nearly
}

}  // namespace mllmsim::omnibal
