#include "strategies/omnibal/balanced_model.hpp"

#include "sim/base/errors.hpp"
#include "strategies/omnibal/partition_search.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::omnibal {
namespace {

template <class T>
const T& option(const Job& job, const char* name) {
  return std::get<T>(job.options.at(name));
}

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

SearchOptions search_options(const Job& job) {
  SearchOptions options;
  options.radius = static_cast<int>(option<std::int64_t>(job, "radius"));
  options.simulated = static_cast<std::size_t>(option<std::int64_t>(job, "simulated"));
  if (options.radius < 0 || options.radius > 10)
    throw UserError("", "strategy.radius", "expected 0 to 10");
  if (option<std::int64_t>(job, "simulated") < 1)
    throw UserError("", "strategy.simulated", "expected at least 1");
  return options;
}

}  // namespace

std::vector<OptionSpec> omnibal_options() {
  return {{"data", "pack samples; otherwise as data.batching says", true},
          {"model",
           "search a balanced partition; otherwise cut by parameters, an LLM alone by time", true},
          {"memory", "recompute only what does not fit; otherwise as the job says", true},
          {"packing", "the packer", std::string("isf"), {"isf", "best-fit"}},
          {"search",
           "paper: radius around a greedy cut; exact: dynamic programming, then simulated moves",
           std::string("paper"),
           {"paper", "exact"}},
          {"radius", "layers by which each cut may move from the greedy one", std::int64_t{1}},
          {"simulated", "best-ranked cuts that are simulated", std::int64_t{15}}};
}

bool is_on(const Job& job, const char* name) { return option<bool>(job, name); }

Job with_packs(const Job& job) {
  Job packed = job;
  if (is_on(job, "data"))
    packed.data.batching =
        option<std::string>(job, "packing") == "isf" ? Batching::isf : Batching::best_fit;
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
  const SearchOptions options = search_options(packed);
  const Cut cut = option<std::string>(packed, "search") == "exact"
                      ? exact_cut(partition, stages, step_time)
                      : search_cut(partition, stages, options, step_time);
  return plans::stages_from(packed, layers, cut);
}

}  // namespace mllmsim::omnibal
