#include "strategies/optimus/encoder_work.hpp"

#include <algorithm>
#include <map>

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::optimus {
namespace {

Time message(const Job& job, const CostContext& costs, int from, int to, Bytes bytes) {
  if (from == to) return {};
  const Parallelism& p = job.parallelism;
  const bool same_node =
      job.cluster.domain_of(p.rank(0, 0, from)) == job.cluster.domain_of(p.rank(0, 0, to));
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
  const int domains = job.cluster.domain_of(gpus - 1) + 1;
  const int groups = p.pipeline_model_parallel_size / plan.pp;
  const int holders = std::min({domains * groups, pipelines, job.cluster.domains()});
  const bool crosses =
      holders * job.cluster.nodes_per_domain() > job.cluster.topology.nodes_per_leaf;
  const costs::GroupShape shape{pipelines, holders, plan.tp, crosses};
  return to_time(costs.kernels.collective({op, Bytes{bytes}, shape}).time);
}

// Transfers between stages, and from the last stage of each group to the LLM.
void add_transfers(const Job& job, const EncoderPlan& plan, costs::LayerCosts& encoder_costs,
                   const MicroBatch& mb, const CostContext& costs, EncoderWork& out) {
  const int ranks = job.parallelism.pipeline_model_parallel_size;
  Bytes bytes{};
  for (int s = 0; s < plan.pp; ++s) {
    const Chunk& stage = plan.stages[static_cast<std::size_t>(s)];
    bytes = scaled(encoder_costs.boundary(stage.back().layer, mb), 1.0 / plan.tp);
    out.hops.push_back(message(job, costs, s, std::min(s + 1, ranks - 1), bytes));
  }
  for (int g = 0; g < out.groups; ++g) {
    const int last = plan.rank_of(static_cast<std::uint32_t>(g), plan.pp - 1);
    out.to_llm.push_back(message(job, costs, last, 0, bytes));
  }
}

// Gathers of parameters and reductions of gradients of one stage, bucket by bucket.
void add_data_parallel(const Job& job, const EncoderPlan& plan, int stage, const CostContext& costs,
                       EncoderWork& out) {
  const bool sharded = job.parallelism.zero_stage == 1;
  std::vector<lower::Bucket> buckets = lower::encoder_buckets(job, plan, stage);
  std::vector<Time>& when = out.gathered.emplace_back();
  Time at{};
  for (const lower::Bucket& b : buckets) {
    if (sharded)
      at += collective(job, plan, costs, costs::CollectiveOp::all_gather,
                       job.software.precision.parameter_bytes * b.parameters);
    when.resize(b.to, at);
  }
  std::reverse(buckets.begin(), buckets.end());
  const auto op = lower::scatters_gradients(job) ? costs::CollectiveOp::reduce_scatter
                                                 : costs::CollectiveOp::all_reduce;
  std::vector<EncoderWork::Reduction>& reduced = out.reductions.emplace_back();
  for (const lower::Bucket& b : buckets) {
    const std::int64_t bytes = job.software.precision.grad_bytes_per_parameter * b.parameters;
    reduced.push_back({b.from, b.to, collective(job, plan, costs, op, bytes)});
  }
}

using Wave = std::vector<const MicroBatch*>;

// The kernels of a new kind of wave.
void add_kind(const EncoderPlan& plan, costs::LayerCosts& encoder_costs, const Wave& wave,
              double slowdown, EncoderWork& out) {
  const auto kernels = [&](std::size_t stage, bool forward) {
    std::vector<EncoderWork::Kernel> list;
    for (const lower::EncoderKernel& k :
         lower::encoder_kernels(encoder_costs, plan.stages[stage], wave, forward))
      list.push_back(
          {k.kernel.time, scaled(k.kernel.time, slowdown), k.kernel.communication, k.layer});
    return list;
  };
  auto& forward = out.forward.emplace_back();
  auto& backward = out.backward.emplace_back();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    forward.push_back(kernels(s, true));
    backward.push_back(out.has_backward[s] ? kernels(s, false)
                                           : std::vector<EncoderWork::Kernel>{});
  }
}

void add_waves(const EncoderPlan& plan, const std::vector<MicroBatch>& batches,
               costs::LayerCosts& encoder_costs, double slowdown, EncoderWork& out) {
  std::map<std::vector<TokenBatch>, std::uint32_t> known;
  for (std::size_t first = 0; first < batches.size(); first += out.lanes) {
    const std::size_t end = std::min(first + out.lanes, batches.size());
    Wave wave;
    std::vector<TokenBatch> tokens;
    for (std::size_t i = first; i < end; ++i) {
      wave.push_back(&batches[i]);
      tokens.insert(tokens.end(), batches[i].encoders.begin(), batches[i].encoders.end());
    }
    const auto [kind, added] =
        known.try_emplace(std::move(tokens), static_cast<std::uint32_t>(known.size()));
    if (added) add_kind(plan, encoder_costs, wave, slowdown, out);
    out.kinds.push_back(kind->second);
  }
}

}  // namespace

EncoderWork encoder_work(const Job& job, const Plan& llm, const EncoderPlan& plan,
                         costs::LayerCosts& encoder_costs, const CostContext& costs) {
  const int ranks = job.parallelism.pipeline_model_parallel_size;
  const std::vector<MicroBatch>& batches = llm.micro_batches.front();
  EncoderWork out;
  out.pp = plan.pp;
  out.groups = plan.groups(ranks);
  out.lanes = static_cast<std::uint32_t>(job.parallelism.tensor_model_parallel_size / plan.tp);
  out.micro_batches = static_cast<std::uint32_t>(batches.size());
  add_transfers(job, plan, encoder_costs, batches.front(), costs, out);
  for (int stage = 0; stage < plan.pp; ++stage) {
    out.has_backward.push_back(lower::backward_reaches(job.model, plan, stage));
    add_data_parallel(job, plan, stage, costs, out);
  }
  add_waves(plan, batches, encoder_costs, costs.kernels.gemm_slowdown_beside_collective(), out);
  for (std::uint32_t wave = 0; wave < out.waves(); ++wave)
    for (int stage = 0; stage < plan.pp; ++stage)
      for (const bool forward : {true, false})
        for (const EncoderWork::Kernel& k : out.kernels(wave, stage, forward)) out.all += k.time;
  out.all = out.all / ranks;
  return out;
}

}  // namespace mllmsim::optimus
