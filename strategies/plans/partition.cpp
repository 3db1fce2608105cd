#include "strategies/plans/partition.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/plans/balanced_cut.hpp"
#include "strategies/plans/pass.hpp"

namespace mllmsim::plans {
std::vector<std::size_t> cut_by_parameters(const Job& job, const std::vector<Layer>& layers,
                                           std::size_t parts) {
  std::vector<double> weights;
  for (const Layer& l : layers) weights.push_back(static_cast<double>(parameters(job.model, l)));
  return balanced_cut(weights, parts);
}

std::vector<double> layer_times(const Job& job, costs::LayerCosts& layer_costs,
                                const std::vector<Layer>& layers, const MicroBatch& mb) {
  std::vector<double> seconds;
  for (const Layer& layer : layers) {
    const costs::LayerTotals t = layer_costs.total(layer, mb, recompute_of(job, layer));
    seconds.push_back(to_seconds(t.forward.time + t.recompute.time + t.backward.time).value);
  }
  return seconds;
}

std::vector<std::size_t> cut_by_time(const Job& job, costs::LayerCosts& layer_costs,
                                     const std::vector<Layer>& layers, const MicroBatch& mb,
                                     std::size_t parts) {
  return balanced_cut(layer_times(job, layer_costs, layers, mb), parts);
}

std::vector<std::size_t> block_groups(const std::vector<Layer>& layers) {
  std::vector<std::size_t> sizes;
  std::size_t pending = 0;
  for (const Layer& layer : layers) {
    if (layer.kind == LayerKind::block)
      sizes.push_back(std::exchange(pending, 0) + 1);
    else if (layer.kind == LayerKind::embedding || sizes.empty())
      ++pending;
    else
      ++sizes.back();
  }
  if (pending > 0) sizes.push_back(pending);
  return sizes;
}

Recompute recompute_of(const Job& job, const Layer& layer) {
  if (layer.kind != LayerKind::block) return Recompute::none;
  return is_llm(job.model, layer) ? job.recompute.llm : job.recompute.encoder;
}

std::size_t model_stages(const Job& job) {
  const Parallelism& p = job.parallelism;
  return static_cast<std::size_t>(p.pipeline_model_parallel_size) *
         static_cast<std::size_t>(p.virtual_pipeline_stages);
}

namespace {

// A module's blocks in one chunk, one after another.
class FullRecompute {
 public:
  explicit FullRecompute(const RecomputePlan& plan) : plan_(plan) {}

  PlannedLayer next(const Layer& layer, Recompute recompute) {
    if (recompute != Recompute::full) return {layer, recompute, 0};
    if (module_ != layer.module) count_ = 0;
    module_ = layer.module;
    const int at = count_++;
    if (plan_.method == RecomputeMethod::block)
      return {layer, at < plan_.num_layers ? recompute : Recompute::none, 0};
    return {layer, recompute, static_cast<std::uint16_t>(at % plan_.num_layers)};
  }

 private:
  const RecomputePlan& plan_;
  std::uint16_t module_ = 0;
  int count_ = 0;
};

}  // namespace

std::vector<std::vector<Chunk>> stages_from(const Job& job, const std::vector<Layer>& layers,
                                            const std::vector<std::size_t>& sizes) {
  const auto pp = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size);
  std::vector<std::vector<Chunk>> stages(pp);
  std::vector<int> left = job.recompute.layers_per_stage;
  std::size_t at = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    Chunk& chunk = stages[k % pp].emplace_back();
    FullRecompute full(job.recompute);
    for (std::size_t i = 0; i < sizes[k]; ++i, ++at) {
      Recompute recompute = recompute_of(job, layers[at]);
      if (!left.empty() && layers[at].kind == LayerKind::block && left[k % pp]-- <= 0)
        recompute = Recompute::none;
      chunk.push_back(full.next(layers[at], recompute));
    }
  }
  check(at == layers.size(), "a cut holds every layer once");
  return stages;
}

std::shared_ptr<const data::Batches> pass_of(const Job& job) {
  return job.data.set ? std::make_shared<const data::Batches>(batches_of(job)) : nullptr;
}

MicroBatch typical_micro_batch(const Job& job, const data::Batches* pass) {
  return pass ? mean_micro_batch(job, *pass) : uniform_micro_batch(job);
}

MicroBatch uniform_micro_batch(const Job& job) {
  const std::int64_t samples = job.parallelism.micro_batch_size;
  MicroBatch mb;
  mb.samples = samples;
  const auto tiles = std::llround(job.data.tiles_per_sample * static_cast<double>(samples));
  for (const Encoder& e : job.model.encoders) mb.encoders.push_back({{{e.tokens_per_tile, tiles}}});
  mb.llm.groups = {{job.data.tokens_per_sample, samples, cross_keys(job.model, mb, samples)}};
  return mb;
}

Plan plan_from(const Job& job, std::vector<std::vector<Chunk>> stages) {
  return plan_from(job, std::move(stages), pass_of(job));
}

Plan plan_from(const Job& job, std::vector<std::vector<Chunk>> stages,
               std::shared_ptr<const data::Batches> pass) {
  const Parallelism& p = job.parallelism;
  Plan plan;
  plan.schedule = p.pipeline_model_parallel_size == 1 ? ScheduleKind::accumulate
                  : p.virtual_pipeline_stages > 1     ? ScheduleKind::interleaved
                                                      : ScheduleKind::one_f_one_b;
  plan.micro_batch_group = p.microbatch_group_size_per_virtual_pipeline_stage;
  plan.stages = std::move(stages);
  if (pass)
    plan.micro_batches = micro_batches_of(job, *pass, 0);
  else
    plan.micro_batches = {std::vector<MicroBatch>(static_cast<std::size_t>(p.micro_batches()),
                                                  uniform_micro_batch(job))};
  plan.pass = std::move(pass);
  return plan;
}

Plan plan_of_given_times(const Job& job) {
  const Parallelism& p = job.parallelism;
  const std::vector<Chunk> chunks(static_cast<std::size_t>(p.virtual_pipeline_stages));
  return plan_from(job,
                   std::vector(static_cast<std::size_t>(p.pipeline_model_parallel_size), chunks));
}

}  // namespace mllmsim::plans
