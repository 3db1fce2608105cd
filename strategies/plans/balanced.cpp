// Layers cut into virtual_pipeline_stages * pp model stages so that the slowest takes as little
// time as can be (forward + backward + recompute of one micro-batch, from the cost model), by
// dynamic programming; interleaved 1F1B.
#include "strategies/job/strategy.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::plans {
namespace {

class Balanced : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    const Parallelism& p = job.parallelism;
    const std::vector<Layer> layers = layers_of(job.model);
    const auto pass = pass_of(job);
    const MicroBatch mb = typical_micro_batch(job, pass.get());
    std::vector<double> seconds;
    for (const Layer& layer : layers) {
      const costs::LayerTotals t = costs.layers.total(layer, mb, recompute_of(job, layer));
      seconds.push_back(to_seconds(t.forward.time + t.recompute.time + t.backward.time).value);
    }
    const auto stages = static_cast<std::size_t>(p.pipeline_model_parallel_size) *
                        static_cast<std::size_t>(p.virtual_pipeline_stages);
    return plan_from(job, stages_from(job, layers, balanced_cut(seconds, stages)), pass);
  }
};

const Registration registration{
    {"balanced",
     "interleaved 1F1B, layers cut by dynamic programming into virtual stages of equal time",
     {},
     [] { return std::unique_ptr<Strategy>(new Balanced); }}};

}  // namespace
}  // namespace mllmsim::plans
