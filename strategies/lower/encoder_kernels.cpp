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

std::vector<EncoderLayer> encoder_layers(costs::LayerCosts& costs, const Chunk& stage,
                                         const std::vector<const MicroBatch*>& wave, bool forward) {
  std::vector<EncoderLayer> out;
  out.reserve(stage.size());
  const costs::LayerCost* known = nullptr;
  const PlannedLayer* of = nullptr;
  std::int64_t carried = 0;  // memory of layers without a kernel to hang it on
  const auto add = [&](const PlannedLayer& planned) {
    // Most blocks of a stage are like the one before: only the first is looked for.
    if (!known || !alike(costs, *of, planned)) known = &slowest(costs, planned, wave);
    of = &planned;
    const std::int64_t saved = known->saved.value, working = known->working.value;
    const bool empty =
        forward ? known->forward.empty() : known->recompute.empty() && known->backward.empty();
    if (empty)
      carried += forward ? saved : -saved;
    else
      out.push_back({known, static_cast<std::uint32_t>(&planned - stage.data()),
                     forward ? MemoryDeltas{saved, 0} : MemoryDeltas{working, -saved - working}});
  };
  if (forward)
    std::for_each(stage.begin(), stage.end(), add);
  else
    std::for_each(stage.rbegin(), stage.rend(), add);
  if (out.empty()) out.push_back({});
  (forward ? out.front().memory.start : out.back().memory.end) += carried;
  return out;
}

std::vector<EncoderKernel> encoder_kernels(costs::LayerCosts& costs, const Chunk& stage,
                                           const std::vector<const MicroBatch*>& wave,
                                           bool forward) {
  std::vector<EncoderKernel> out;
  const auto add = [&](const std::vector<costs::TimedKernel>& kernels, TaskKind kind,
                       std::uint32_t layer) {
    for (const costs::TimedKernel& k : kernels)
      out.push_back({k, k.communication ? TaskKind::tp_collective : kind, 0, 0, layer});
  };
  for (const EncoderLayer& l : encoder_layers(costs, stage, wave, forward)) {
    const std::size_t first = out.size();
    if (!l.cost) {  // an empty kernel keeps the order
      const costs::TimedKernel nothing{"nothing", false, {}, {}, {}};
      add({nothing}, forward ? TaskKind::forward : TaskKind::backward, l.layer);
    } else if (forward) {
      if (out.empty()) out.reserve(stage.size() * l.cost->forward.size());
      add(l.cost->forward, TaskKind::forward, l.layer);
    } else {
      if (out.empty())
        out.reserve(stage.size() * (l.cost->recompute.size() + l.cost->backward.size()));
      add(l.cost->recompute, TaskKind::recompute, l.layer);
      add(l.cost->backward, TaskKind::backward, l.layer);
    }
    out[first].memory_at_start += l.memory.start;
    out.back().memory_at_end += l.memory.end;
  }
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

costs::LayerCosts encoder_layer_costs(const Job& job, const EncoderPlan& plan,
                                      const costs::KernelCosts& kernels) {
  return {job.model, encoder_parallelism(job, plan), job.software, kernels, job.cluster};
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
