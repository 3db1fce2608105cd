#include <algorithm>

#include "strategies/lower/groups.hpp"
#include "strategies/optimus/bubble_scheduler.hpp"

namespace mllmsim::optimus {
namespace {

Time message(const Job& job, const CostContext& costs, int from, int to, Bytes bytes) {
  if (from == to) return {};
  const Parallelism& p = job.parallelism;
  const bool same_node =
      job.cluster.node_of(p.rank(0, 0, from)) == job.cluster.node_of(p.rank(0, 0, to));
  return to_time(costs.kernels.point_to_point({bytes, same_node, 1}).time);
}

// A collective of an encoder stage over all encoder pipelines. Ranks fill nodes, so a pipeline
// rank's GPUs of all replicas are neighbours.
Time collective(const Job& job, const EncoderPlan& plan, const CostContext& costs,
                costs::CollectiveOp op, std::int64_t bytes) {
  const Parallelism& p = job.parallelism;
  const int pipelines = lower::encoder_parallelism(job, plan).data_parallel_size;
  if (pipelines == 1 || bytes == 0) return {};
  const int gpus = p.data_parallel_size * p.tensor_model_parallel_size;  // of one pipeline rank
  const int nodes = (gpus - 1) / job.cluster.gpus_per_node + 1;
  const int groups = p.pipeline_model_parallel_size / plan.pp;
  const int holders = std::min({nodes * groups, pipelines, job.cluster.nodes});
  const costs::GroupShape shape{pipelines, holders, plan.tp, holders > job.cluster.nodes_per_leaf};
  return to_time(costs.kernels.collective({op, Bytes{bytes}, shape}).time);
}

}  // namespace

EncoderWork::EncoderWork(const Job& job, const Plan& llm_plan, const EncoderPlan& encoder_plan,
                         costs::LayerCosts& encoder_costs, const CostContext& costs)
    : llm(llm_plan),
      plan(encoder_plan),
      costs_(encoder_costs),
      slowdown_(costs.kernels.gemm_slowdown_beside_collective()) {
  const int ranks = job.parallelism.pipeline_model_parallel_size;
  lanes = job.parallelism.tensor_model_parallel_size / plan.tp;
  groups = plan.groups(ranks);
  backward = lower::backward_reaches(job.model, plan, plan.pp - 1);
  const MicroBatch& mb = llm.micro_batches.front().front();
  for (int s = 0; s < plan.pp; ++s) {
    const Chunk& stage = plan.stages[static_cast<std::size_t>(s)];
    stage_backward.push_back(lower::backward_reaches(job.model, plan, s));
    const Bytes bytes = scaled(encoder_costs.boundary(stage.back().layer, mb), 1.0 / plan.tp);
    hops_.push_back(message(job, costs, s, std::min(s + 1, ranks - 1), bytes));
    if (s + 1 == plan.pp)
      for (int g = 0; g < groups; ++g)
        to_llm_.push_back(
            message(job, costs, plan.rank_of(static_cast<std::uint32_t>(g), s), 0, bytes));
  }
  const bool sharded = job.parallelism.zero_stage == 1;
  for (int stage = 0; stage < plan.pp; ++stage) {
    std::vector<lower::EncoderBucket> buckets = lower::encoder_buckets(job, plan, stage);
    std::vector<Time>& when = gathered.emplace_back();
    Time at{};
    for (const lower::EncoderBucket& b : buckets) {
      if (sharded)
        at += collective(job, plan, costs, costs::CollectiveOp::all_gather,
                         job.software.precision.parameter_bytes * b.parameters);
      when.resize(b.to, at);
    }
    std::reverse(buckets.begin(), buckets.end());
    std::vector<Reduction>& reduced = reductions.emplace_back();
    for (const lower::EncoderBucket& b : buckets)
      reduced.push_back(
          {b.from, b.to,
           collective(
               job, plan, costs,
               sharded ? costs::CollectiveOp::reduce_scatter : costs::CollectiveOp::all_reduce,
               job.software.precision.grad_bytes_per_parameter * b.parameters)});
  }
  const auto& batches = llm.micro_batches.front();
  for (const MicroBatch& other : batches) uniform_ = uniform_ && other.encoders == mb.encoders;
  const auto step = static_cast<std::uint32_t>(lanes);
  for (std::uint32_t i = 0; i < batches.size(); i += step)
    for (int s = 0; s < plan.pp; ++s)
      for (bool forward : {true, false}) {
        if (!forward && !stage_backward[static_cast<std::size_t>(s)]) continue;
        const auto count = std::min(step, static_cast<std::uint32_t>(batches.size()) - i);
        for (const Kernel& k : kernels(i, count, s, forward)) all += k.time;
      }
  all = all / ranks;
}

const std::vector<EncoderWork::Kernel>& EncoderWork::kernels(std::uint32_t first,
                                                             std::uint32_t count, int stage,
                                                             bool forward) {
  std::vector<const MicroBatch*> wave;
  Key key{{}, stage, forward};
  for (std::uint32_t i = first; i < first + count; ++i) {
    const MicroBatch& mb = llm.micro_batches.front()[i];
    if (!uniform_) key.tokens.insert(key.tokens.end(), mb.encoders.begin(), mb.encoders.end());
    wave.push_back(&mb);
  }
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  std::vector<Kernel>& out = known_[key];
  for (const lower::EncoderKernel& k :
       lower::encoder_kernels(costs_, plan.stages[static_cast<std::size_t>(stage)], wave, forward))
    out.push_back(
        {k.kernel.time, scaled(k.kernel.time, slowdown_), k.kernel.communication, k.layer});
  return out;
}

}  // namespace mllmsim::optimus
