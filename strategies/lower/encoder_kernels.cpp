#include "strategies/lower/encoder_kernels.hpp"
#include "cost_models/layers/layer_costs.hpp"

#include <algorithm>

#include "strategies/lower/plan_costs.hpp"

namespace mllmsim::lower {
namespace {

// Of the lanes' costs of a layer, the longest.
const costs::LayerCost& slowest(costs::LayerCosts& costs, const PlannedLayer& layer,
                                const std::vector<const MicroBatch*>& wave) {
  const costs::LayerCost* most = nullptr;
  Time longest{-1};
  const MicroBatch* before = nullptr;
  for (const MicroBatch* mb : wave) {
    if (before && before->encoders == mb->encoders) continue;  // as long as the lane before
    before = mb;
    const costs::LayerCost& cost = costs.cost(layer.layer, *mb, layer.recompute);
    const Time time = costs::totals(cost.forward).time + costs::totals(cost.recompute).time +
                      costs::totals(cost.backward).time;
    if (time <= longest) continue;
    longest = time;
    most = &cost;
  }
  return *most;
}

}  // namespace

std::vector<EncoderKernel> encoder_kernels(costs::LayerCosts& costs, const Chunk& stage,
                                           const std::vector<const MicroBatch*>& wave,
                                           bool forward) {
  std::vector<EncoderKernel> out;
  const costs::LayerCost* known = nullptr;
  const PlannedLayer* of = nullptr;
  std::int64_t carried = 0;  // memory of layers without a kernel to hang it on
  const auto add = [&](const std::vector<costs::TimedKernel>& kernels, TaskKind kind) {
    for (const costs::TimedKernel& k : kernels)
      out.push_back({k, k.communication ? TaskKind::tp_collective : kind});
  };
  const auto add_layer = [&](const PlannedLayer& planned) {
    const auto layer = static_cast<std::uint32_t>(&planned - stage.data());
    // Most blocks of a stage are like the one before: only the first is looked for.
    if (!known || !alike(costs, *of, planned)) known = &slowest(costs, planned, wave);
    of = &planned;
    const costs::LayerCost& cost = *known;
    if (out.empty())
      out.reserve(stage.size() *
                  (forward ? cost.forward.size() : cost.recompute.size() + cost.backward.size()));
    const std::size_t first = out.size();
    if (forward) {
      add(cost.forward, TaskKind::forward);
    } else {
      add(cost.recompute, TaskKind::recompute);
      add(cost.backward, TaskKind::backward);
    }
    if (out.size() == first) {
      carried += forward ? cost.saved.value : -cost.saved.value;
      return;
    }
    for (std::size_t i = first; i < out.size(); ++i) out[i].layer = layer;
    out[first].memory_at_start += forward ? cost.saved.value : cost.working.value;
    if (!forward) out.back().memory_at_end -= cost.saved.value + cost.working.value;
  };
  if (forward)
    std::for_each(stage.begin(), stage.end(), add_layer);
  else
    std::for_each(stage.rbegin(), stage.rend(), add_layer);
  if (out.empty())  // nothing to compute here: an empty kernel keeps the order
    out.push_back(
        {{"nothing", false, {}, {}, {}}, forward ? TaskKind::forward : TaskKind::backward});
  (forward ? out.front().memory_at_start : out.back().memory_at_end) += carried;
  return out;
}

Parallelism encoder_parallelism(const Job& job, const EncoderPlan& plan) {
  Parallelism p = job.parallelism;
  p.data_parallel_size = p.world_size() / (plan.tp * plan.pp);
  p.tensor_model_parallel_size = plan.tp;
  p.pipeline_model_parallel_size = plan.pp;
  p.virtual_pipeline_stages = 1;
  return p;
}

bool backward_reaches(const Model& model, const EncoderPlan& plan, int stage) {
  return std::any_of(plan.stages.begin(), plan.stages.begin() + stage + 1, [&](const Chunk& chunk) {
    return std::any_of(chunk.begin(), chunk.end(), [&](const PlannedLayer& p) {
      return trained(model, p.layer) || has_adapters(model, p.layer);
    });
  });
}

std::vector<Bucket> encoder_buckets(const Job& job, const EncoderPlan& plan, int stage) {
  std::vector<std::int64_t> parameters;
  for (const PlannedLayer& p : plan.stage_of(stage))
    parameters.push_back(trained_parameters_per_rank(job.model, p.layer, plan.tp));
  const int replicas = encoder_parallelism(job, plan).data_parallel_size;
  return buckets(parameters, job.software.bucket_parameters(replicas));
}

std::int64_t encoder_parameters_per_gpu(const Job& job, const EncoderPlan& plan, int rank,
                                        bool only_trained) {
  std::int64_t n = 0;
  for (const PlannedLayer& p : plan.stage_of(rank))
    n += only_trained ? trained_parameters_per_rank(job.model, p.layer, plan.tp)
                      : parameters_per_rank(job.model, p.layer, plan.tp);
  return n;
}

}  // namespace mllmsim::lower
