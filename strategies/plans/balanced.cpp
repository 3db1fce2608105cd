// Layers cut into virtual_pipeline_stages * pp model stages of equal time (forward + backward +
// recompute of one micro-batch, from the cost model), by dynamic programming; interleaved 1F1B.
//
// A rank holds every pp-th stage. The cut whose largest stage is smallest may add up badly, within
// a round of the ranks or over a rank's stages, and which of many such cuts it is hangs on
// rounding. So cuts that are best in other ways are tried as well (the least sum over chunks of
// their heaviest part; ranks evened out by moving single layers; larger stages allowed), and the
// one with the shortest simulated step is taken.
#include <algorithm>

#include "strategies/plans/balanced_cut.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::plans {
namespace {

using Sizes = std::vector<std::size_t>;

// How much larger than need be the largest stage of a start may be.
constexpr double kSlack[] = {0, 0.02, 0.05, 0.1, 0.2};

Plan plan_balanced(const Job& job, const CostContext& costs) {
  const std::vector<Layer> layers = layers_of(job.model);
  const auto pass = pass_of(job);
  const MicroBatch mb = typical_micro_batch(job, pass.get());
  const auto plan_of = [&](const Sizes& sizes) {
    return plan_from(job, stages_from(job, layers, sizes), pass);
  };
  const auto ranks = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size);
  const std::size_t stages = model_stages(job);
  const std::vector<double> times = layer_times(job, costs.layers, layers, mb);
  if (stages == ranks) return plan_of(balanced_cut(times, stages));

  std::vector<Sizes> candidates;
  const auto add = [&](Sizes sizes) {
    if (std::find(candidates.begin(), candidates.end(), sizes) == candidates.end())
      candidates.push_back(std::move(sizes));
  };
  add(cut_by_chunks(times, ranks, stages / ranks));
  add(even_ranks(times, candidates.front(), ranks));
  for (const double slack : kSlack) {
    const Sizes start = balanced_cut(times, stages, slack);
    add(start);
    add(even_ranks(times, start, ranks));
  }
  // One replica stands for all.
  const auto span_of = [&](const Sizes& sizes) {
    Plan plan = plan_of(sizes);
    plan.micro_batches.resize(1);
    return simulate_plan(job, plan, costs).span();
  };
  Sizes best = candidates.front();
  Time shortest = span_of(best);
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (const Time span = span_of(candidates[i]); span < shortest) {
      shortest = span;
      best = candidates[i];
    }
  return plan_of(best);
}

}  // namespace

Strategy balanced_strategy() {
  return {"balanced",
          "interleaved 1F1B, layers cut by dynamic programming into virtual stages of equal time",
          {},
          plan_balanced};
}

}  // namespace mllmsim::plans
