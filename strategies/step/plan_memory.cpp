#include "strategies/step/plan_memory.hpp"

#include <algorithm>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/lower/parameters.hpp"
#include "strategies/lower/tied_embedding.hpp"

namespace mllmsim::step {
namespace {

int communicators(const Parallelism& p) {
  if (p.world_size() == 1) return 0;
  return 1 + (p.tensor_model_parallel_size > 1) + (p.gradient_ranks() > 1) +
         (p.pipeline_model_parallel_size > 1) + (p.context_parallel_size > 1) +
         (p.expert_model_parallel_size > 1) + (p.experts_apart() && p.expert_data_ranks() > 1);
}

// Transformer Engine's, where tp communication overlaps products (--tp-comm-overlap): of each of
// the overlaps in a block each a buffer as large as its whole input (module/base.py,
// initialize_ub), outside PyTorch's allocator. Those that gather do so in a byte in fp8; four
// reduce.
Bytes overlap_buffers(const Job& job, const Plan& plan) {
  constexpr std::int64_t kReduce = 4;
  const Parallelism& p = job.parallelism;
  if (!job.software.overlap_tp_forward || !p.sequence_parallel || p.tensor_model_parallel_size == 1)
    return {};
  std::int64_t tokens = 0;
  for (const std::vector<MicroBatch>& replica : plan.micro_batches)
    for (const MicroBatch& mb : replica) tokens = std::max(tokens, mb.llm.tokens());
  const NumberFormat format = job.software.precision.format;
  const bool fp8 = is_quantised(format) && format != NumberFormat::nvfp4;
  const std::int64_t half = job.software.precision.activation_bytes;
  return Bytes{tokens / p.context_parallel_size * job.model.llm.blocks.hidden_size *
               (job.software.memory.tp_overlap_gather_buffers * (fp8 ? 1 : half) + kReduce * half)};
}

bool has_experts(const Job& job, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks)
    for (const PlannedLayer& p : chunk)
      if (p.layer.kind == LayerKind::block && blocks_of(job.model, p.layer).experts.num_experts > 0)
        return true;
  return false;
}

// What weights of quantised products take beside their bf16 ones, by rows and by columns; less
// those, if only quantised ones are kept. Sharded parameters are quantised when they are gathered,
// and a second copy of theirs may be kept between neighbours.
Bytes quantised_copies(const Job& job, const Plan& plan, int rank) {
  const Parallelism& p = job.parallelism;
  const Precision& precision = job.software.precision;
  if (!is_quantised(precision.format) && p.zero_hpz_partition_size <= 1) return {};
  std::int64_t quantised = 0, all = 0;
  for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)])
    for (const PlannedLayer& layer : chunk) {
      const std::int64_t n = lower::parameters_per_gpu(job, layer, false);
      all += n;
      if (lower::is_quantised(job, layer)) quantised += n;
    }
  const double format = bytes_of(precision.format);
  if (p.zero_stage < 3) {
    const double bf16 = precision.fp8_param_gather ? precision.parameter_bytes : 0;
    return scaled(Bytes{quantised}, 2 * format - bf16);
  }
  Bytes extra{};
  if (precision.fp8_param_gather)
    extra += scaled(Bytes{quantised}, (format - precision.parameter_bytes) / p.shard_ranks());
  if (p.zero_hpz_partition_size > 1)
    extra += Bytes{all * precision.parameter_bytes / p.zero_hpz_partition_size};
  return extra;
}

}  // namespace

RankState rank_state(const Job& job, const Plan& plan, int rank) {
  const Parallelism& p = job.parallelism;
  const std::vector<Chunk>& chunks = plan.stages[static_cast<std::size_t>(rank)];
  RankState out;
  RankParameters all, trained_parts;
  for (const Chunk& chunk : chunks) {
    all += lower::parameters_of(job, chunk, false);
    trained_parts += lower::parameters_of(job, chunk, true);
  }
  const std::int64_t copied = lower::copied_embedding(job, chunks);
  all.dense += copied;
  if (job.model.llm.trained) trained_parts.dense += copied;
  out.parameters = all.all();
  const std::int64_t trained = trained_parts.all();
  out.held =
      model_state(all.dense, trained_parts.dense, p.shard_ranks(), p.zero_stage, job.software);
  if (all.experts > 0)
    out.held += model_state(all.experts, trained_parts.experts, p.expert_data_ranks(), p.zero_stage,
                            job.software);
  out.held[Holding::weights] += quantised_copies(job, plan, rank);
  if (plan.encoders) {
    const std::int64_t n = lower::encoder_parameters_per_gpu(job, *plan.encoders, rank, false);
    out.held += model_state(n, lower::encoder_parameters_per_gpu(job, *plan.encoders, rank, true),
                            lower::encoder_parallelism(job, *plan.encoders).data_parallel_size,
                            p.zero_stage, job.software);
    out.parameters += n;
  }
  const MemorySettings& memory = job.software.memory;
  out.end = step_end(job, chunks, trained, out.held[Holding::optimizer]);
  if (lower::copies_gradients(job)) {  // and of one micro-batch no more than those copies remain
    out.held[Holding::buckets] = out.held[Holding::gradients];
    if (micro_batches_of(plan) == 1) out.held[Holding::gradients] = {};
  }
  if (p.gradient_ranks() > 1 && p.zero_stage == 2) {  // until a bucket's gradients are scattered
    const std::int64_t bucket =
        std::min(trained, job.software.bucket_parameters(p.gradient_ranks()));
    out.held[Holding::buckets] =
        Bytes{job.software.precision.sharded_grad_bytes_per_parameter * bucket};
  }
  out.held[Holding::workspaces] = memory.gemm_workspaces;
  if (has_experts(job, chunks)) out.held[Holding::workspaces] += memory.grouped_gemm_workspaces;
  out.held[Holding::communicators] =
      memory.per_communicator * communicators(p) + overlap_buffers(job, plan);
  out.held[Holding::context] = memory.context;
  out.held[Holding::reserve] = job.software.memory_reserve;
  return out;
}

Bytes peak_memory(const Job& job, const Plan& plan,
                  const std::vector<std::vector<MemoryPoint>>& profile) {
  const auto ranks = plan.stages.size();
  Bytes most{};
  for (std::size_t d = 0; d < profile.size(); ++d) {
    const RankState state = rank_state(job, plan, static_cast<int>(d % ranks));
    most = std::max(most, state.held.total() + std::max(peak(profile[d]), state.end.most()));
  }
  return most;
}

}  // namespace mllmsim::step
