// OmniBal (arXiv 2407.20761): balanced packs, a balanced partition and adaptive recompute on a 1F1B
// pipeline. Each part can be switched off; then the Megatron baseline's way takes its place: the
// job's batching, a cut by parameters, recomputation as the job says.
#include <fmt/format.h>

#include "strategies/job/strategy.hpp"
#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/omnibal/balanced_model.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"

namespace mllmsim::omnibal {
namespace {

class Omnibal : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    const Job packed = with_packs(job);
    const auto pass = plans::pass_of(packed);
    const std::vector<Layer> layers = layers_of(job.model);
    const auto stages = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size) *
                        static_cast<std::size_t>(job.parallelism.virtual_pipeline_stages);
    Plan plan = plans::plan_from(
        packed, plans::stages_from(job, layers, plans::cut_by_parameters(job, layers, stages)),
        pass);
    if (is_on(job, "model")) plan.stages = balanced_partition(packed, costs, layers, plan);
    if (is_on(job, "memory")) {
      const MicroBatch largest = plan.pass ? plans::largest_micro_batch(packed, *plan.pass)
                                           : plans::uniform_micro_batch(job);
      adapt_recompute(job, costs, largest, plan);
    }
    add_facts(job, plan);
    return plan;
  }

 private:
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
    const bool data = is_on(job, "data") && job.data.set;
    plan.facts.push_back({"packing", data ? std::get<std::string>(job.options.at("packing"))
                                          : "as the job batches"});
    plan.facts.push_back({"blocks_per_stage", list(block)});
    plan.facts.push_back({"recomputed_blocks_per_stage", list([&](const PlannedLayer& p) {
                            return block(p) && p.recompute == Recompute::full;
                          })});
  }
};

const Registration registration{
    {"omnibal",
     "OmniBal: balanced packs, balanced partition and adaptive recompute, each switchable",
     omnibal_options(), [] { return std::unique_ptr<Strategy>(new Omnibal); }}};

}  // namespace
}  // namespace mllmsim::omnibal
