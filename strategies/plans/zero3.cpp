// DeepSpeed ZeRO-3 or PyTorch FSDP (full sharding) without a pipeline: every GPU is a replica that
// holds 1/dp of each layer and gathers the rest just before it is used
// (strategies/lower/sharded.cpp). All replicas meet at every layer, so the slowest one's
// micro-batch counts.
#include <fmt/format.h>

#include "sim/base/errors.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"

namespace mllmsim::plans {
namespace {

Plan plan_zero3(const Job& job, const CostContext&) {
  const Parallelism& p = job.parallelism;
  std::vector<Problem> problems;
  const auto needs = [&](const char* key, int wanted, int found) {
    if (found != wanted)
      problems.push_back(
          {"", key, fmt::format("{} needs {}, found {}", job.strategy, wanted, found)});
  };
  needs("parallelism.pipeline_model_parallel_size", 1, p.pipeline_model_parallel_size);
  needs("parallelism.zero_stage", 3, p.zero_stage);
  if (!problems.empty()) throw UserError(std::move(problems));
  const std::vector<Layer> layers = layers_of(job.model);
  return plan_from(job, stages_from(job, layers, {layers.size()}));
}

}  // namespace

Strategy zero3_strategy() {
  return {
      "zero3", "DeepSpeed ZeRO-3: parameters sharded over all GPUs, no pipeline", {}, plan_zero3};
}

// To the simulation the same, under the name published comparisons use.
Strategy fsdp_strategy() {
  return {"fsdp",
          "FSDP: parameters sharded over all GPUs, no pipeline; the same as zero3",
          {},
          plan_zero3};
}

}  // namespace mllmsim::plans
