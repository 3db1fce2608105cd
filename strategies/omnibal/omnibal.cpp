// OmniBal (arXiv 2407.20761): balanced packs, a balanced partition and adaptive recompute on a 1F1B
// pipeline. Each part can be switched off; then the Megatron baseline's way takes its place: the
// job's batching, a cut by parameters, recomputation as the job says.
#include <fmt/format.h>

#include "sim/errors.hpp"
#include "sim/simulation.hpp"
#include "strategies/data/pass.hpp"
#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/omnibal/partition_search.hpp"
#include "strategies/partition.hpp"
#include "strategies/strategy.hpp"

namespace mllmsim {
namespace {

template <class T>
const T& option(const Job& job, const char* name) {
  return std::get<T>(job.options.at(name));
}

PartitionCosts partition_costs(const Job& job, LayerCosts& layers, const MicroBatch& mb) {
  PartitionCosts costs;
  for (const Layer& layer : layers_of(job.model)) {
    const LayerTotals t = layers.total(layer, mb, recompute_of(job, layer));
    costs.forward.push_back(to_seconds(t.forward.time));
    costs.total.push_back(to_seconds(t.forward.time + t.recompute.time + t.backward.time));
    costs.boundary.push_back(layers.boundary(layer, mb));
  }
  return costs;
}

class Omnibal : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    const Job packed = with_packs(job);
    const auto pass = pass_of(packed);
    const MicroBatch typical = typical_micro_batch(packed, pass.get());
    const std::vector<Layer> layers = layers_of(job.model);
    const auto stages = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size) *
                        static_cast<std::size_t>(job.parallelism.virtual_pipeline_stages);
    Plan plan =
        plan_from(packed, stages_from(job, layers, cut_by_parameters(job, layers, stages)), pass);
    if (option<bool>(job, "model")) {
      const Cut cut = best_cut(job, costs, partition_costs(job, costs.layers, typical), plan);
      plan.stages = stages_from(job, layers, cut);
    }
    if (option<bool>(job, "memory")) {
      const MicroBatch largest =
          plan.pass ? largest_micro_batch(packed, *plan.pass) : uniform_micro_batch(job);
      adapt_recompute(job, costs, largest, plan);
    }
    add_facts(job, plan);
    return plan;
  }

 private:
  // The job with its data as this strategy groups them.
  static Job with_packs(const Job& job) {
    Job packed = job;
    if (option<bool>(job, "data"))
      packed.data.batching =
          option<std::string>(job, "packing") == "isf" ? Batching::isf : Batching::best_fit;
    return packed;
  }

  static Cut best_cut(const Job& job, const CostContext& costs, const PartitionCosts& partition,
                      const Plan& around) {
    const std::vector<Layer> layers = layers_of(job.model);
    const std::size_t stages = around.stages.size() * around.stages.front().size();
    // The first step stands for all.
    const auto step_time = [&](const Cut& cut) {
      Plan plan = around;
      plan.stages = stages_from(job, layers, cut);
      return simulate(lower(job, plan, &costs), costs.network.link_bandwidths()).span;
    };
    if (option<std::string>(job, "search") == "exact")
      return exact_cut(partition, stages, step_time);
    SearchOptions options;
    options.radius = static_cast<int>(option<std::int64_t>(job, "radius"));
    options.simulated = static_cast<std::size_t>(option<std::int64_t>(job, "simulated"));
    if (options.radius < 0 || options.radius > 10)
      throw UserError("", "strategy.radius", "expected 0 to 10");
    if (option<std::int64_t>(job, "simulated") < 1)
      throw UserError("", "strategy.simulated", "expected at least 1");
    return search_cut(partition, stages, options, step_time);
  }

  static void add_facts(const Job& job, Plan& plan) {
    const auto list = [&](auto count) {
      std::string text;
      for (const auto& chunks : plan.stages) {
        int n = 0;
        for (const Chunk& chunk : chunks)
          for (const PlannedLayer& p : chunk) n += count(p) ? 1 : 0;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
      }
      return text;
    };
    const auto block = [](const PlannedLayer& p) { return p.layer.kind == LayerKind::block; };
    const bool data = option<bool>(job, "data") && job.data.set;
    plan.facts.push_back(
        {"packing", data ? option<std::string>(job, "packing") : "as the job batches"});
    plan.facts.push_back({"blocks_per_stage", list(block)});
    plan.facts.push_back({"recomputed_blocks_per_stage", list([&](const PlannedLayer& p) {
                            return block(p) && p.recompute == Recompute::full;
                          })});
  }
};

const Registration registration{
    {"omnibal",
     "OmniBal: balanced packs, balanced partition and adaptive recompute, each switchable",
     {{"data", "pack samples; otherwise as data.batching says", true},
      {"model", "search a balanced partition; otherwise cut by parameters", true},
      {"memory", "recompute only what does not fit; otherwise as the job says", true},
      {"packing", "the packer", std::string("isf"), {"isf", "best-fit"}},
      {"search",
       "paper: radius around a greedy cut; exact: dynamic programming, then simulated moves",
       std::string("paper"),
       {"paper", "exact"}},
      {"radius", "layers by which each cut may move from the greedy one", std::int64_t{1}},
      {"simulated", "best-ranked cuts that are simulated", std::int64_t{15}}},
     [] { return std::unique_ptr<Strategy>(new Omnibal); }}};

}  // namespace
}  // namespace mllmsim
