// DeepSpeed ZeRO-3 or FSDP without a pipeline: every GPU is a replica that holds 1/dp of each layer
// and gathers the rest just before it is used (strategies/lower/sharded.cpp). All replicas meet at
// every layer, so the slowest one's micro-batch counts.
#include "sim/base/errors.hpp"
#include "strategies/job/strategy.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::plans {
namespace {

class Zero3 : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext&) const override {
    const Parallelism& p = job.parallelism;
    if (p.pipeline_model_parallel_size != 1 || p.zero_stage != 3)
      throw UserError(
          "", "strategy",
          "zero3 needs parallelism.pipeline_model_parallel_size = 1 and zero_stage = 3");
    const std::vector<Layer> layers = layers_of(job.model);
    return plan_from(job, stages_from(job, layers, {layers.size()}));
  }
};

const Registration registration{
    {"zero3", "DeepSpeed ZeRO-3: parameters sharded over all GPUs, no pipeline", {}, [] {
       return std::unique_ptr<Strategy>(new Zero3);
     }}};

}  // namespace
}  // namespace mllmsim::plans
