// OmniBal (arXiv 2407.20761): balanced packs, a balanced partition and adaptive recompute on a 1F1B
// pipeline. Each part can be switched off; then the Megatron baseline's way takes its place: the
// job's batching, a cut by parameters, recomputation as the job says.
#include "strategies/omnibal/omnibal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/omnibal/balanced_model.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"

namespace mllmsim::omnibal {
namespace {

// "2, 3, 3": how many layers of each stage count.
template <class Counts>
std::string per_stage(const Plan& plan, Counts counts) {
  std::vector<int> numbers;
  for (const auto& chunks : plan.stages) {
    int& n = numbers.emplace_back(0);
    for (const Chunk& chunk : chunks)
      for (const PlannedLayer& p : chunk) n += counts(p) ? 1 : 0;
  }
  return fmt::format("{}", fmt::join(numbers, ", "));
}

void add_facts(const Job& job, Plan& plan) {
  const auto block = [](const PlannedLayer& p) { return p.layer.kind == LayerKind::block; };
  const auto recomputed = [&](const PlannedLayer& p) {
    return block(p) && p.recompute == Recompute::full;
  };
  const bool data = is_on(job, "data") && job.data.set;
  plan.facts.push_back(
      {"packing", data ? option<std::string>(job.options, "packing") : "as the job batches"});
  plan.facts.push_back({"blocks_per_stage", per_stage(plan, block)});
  plan.facts.push_back({"recomputed_blocks_per_stage", per_stage(plan, recomputed)});
}

Plan plan_omnibal(const Job& job, const CostContext& costs) {
  const Job packed = with_packs(job);
  const std::vector<Layer> layers = layers_of(job.model);
  const auto by_parameters = plans::cut_by_parameters(job, layers, plans::model_stages(job));
  Plan plan = plans::plan_from(packed, plans::stages_from(job, layers, by_parameters),
                               plans::pass_of(packed));
  if (is_on(job, "model")) plan.stages = balanced_partition(packed, costs, layers, plan);
  if (is_on(job, "memory")) {
    const MicroBatch largest = plan.pass ? plans::largest_micro_batch(packed, *plan.pass)
                                         : plans::uniform_micro_batch(job);
    adapt_recompute_to_allocator(packed, costs, largest, plan);
  }
  add_facts(job, plan);
  return plan;
}

}  // namespace

Strategy omnibal_strategy() {
  return {"omnibal",
          "OmniBal: balanced packs, balanced partition and adaptive recompute, each switchable",
          omnibal_options(), plan_omnibal};
}

}  // namespace mllmsim::omnibal
