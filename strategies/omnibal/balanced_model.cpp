#include "strategies/omnibal/balanced_model.hpp"

#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/omnibal/partition_search.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::omnibal {
namespace {

PartitionCosts partition_costs(const Job& job, costs::LayerCosts& layer_costs,
                               const std::vector<Layer>& layers, const MicroBatch& mb) {
  PartitionCosts costs;
  for (const Layer& layer : layers) {
    const costs::LayerTotals t = layer_costs.total(layer, mb, plans::recompute_of(job, layer));
    costs.forward.push_back(to_seconds(t.forward.time));
    costs.total.push_back(to_seconds(t.forward.time + t.recompute.time + t.backward.time));
    costs.boundary.push_back(layer_costs.boundary(layer, mb));
  }
  return costs;
}

SearchOptions search_options(const Options& options) {
  return {static_cast<int>(option<std::int64_t>(options, "radius")),
          static_cast<std::size_t>(option<std::int64_t>(options, "simulated"))};
}

}  // namespace

std::vector<OptionSpec> omnibal_options() {
  using data::Batching;
  return {
      {"data", "pack samples; otherwise as data.batching says", true},
      {"model", "search a balanced partition; otherwise cut by parameters, an LLM alone by time",
       true},
      {"memory", "recompute only what does not fit; otherwise as the job says", true},
      {.name = "packing",
       .description = "the packer",
       .default_value = std::string(name_of(Batching::isf)),
       .choices = {std::string(name_of(Batching::isf)), std::string(name_of(Batching::best_fit))}},
      {.name = "search",
       .description =
           "paper: radius around a greedy cut; exact: dynamic programming, then simulated moves",
       .default_value = std::string("paper"),
       .choices = {"paper", "exact"}},
      {.name = "radius",
       .description = "layers by which each cut may move from the greedy one",
       .default_value = std::int64_t{1},
       .range = {0, 10}},
      {.name = "simulated",
       .description = "best-ranked cuts that are simulated",
       .default_value = std::int64_t{15},
       .range = {1, 1e6}}};
}

bool is_on(const Job& job, const char* name) { return option<bool>(job.options, name); }

Job with_packs(const Job& job) {
  Job packed = job;
  if (is_on(job, "data"))
    packed.data.batching =
        named<data::Batching>(option<std::string>(job.options, "packing")).value();
  return packed;
}

std::vector<std::vector<Chunk>> balanced_partition(const Job& packed, const CostContext& costs,
                                                   const std::vector<Layer>& layers,
                                                   const Plan& around) {
  const MicroBatch typical = plans::typical_micro_batch(packed, around.pass.get());
  const PartitionCosts partition = partition_costs(packed, costs.layers, layers, typical);
  const std::size_t stages = around.stages.size() * around.stages.front().size();
  // The first step stands for all.
  const auto step_time = [&](const Cut& cut) {
    Plan plan = around;
    plan.stages = plans::stages_from(packed, layers, cut);
    return simulate_plan(packed, plan, costs).span();
  };
  const Cut cut = option<std::string>(packed.options, "search") == "exact"
                      ? exact_cut(partition, stages, step_time)
                      : search_cut(partition, stages, search_options(packed.options), step_time);
  return plans::stages_from(packed, layers, cut);
}

}  // namespace mllmsim::omnibal
