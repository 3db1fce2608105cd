#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {

RankParameters parameters_of(const Job& job, const PlannedLayer& planned, bool only_trained) {
  return only_trained ? trained_rank_parameters(job.model, planned.layer, job.parallelism)
                      : rank_parameters(job.model, planned.layer, job.parallelism);
}

bool holds_like(const Job& job, const PlannedLayer& a, const PlannedLayer& b) {
  return a.layer.kind == b.layer.kind && a.layer.module == b.layer.module &&
         block_kind(job.model, a.layer) == block_kind(job.model, b.layer);
}

RankParameters parameters_of(const Job& job, const Chunk& chunk, bool only_trained) {
  RankParameters n, each;
  const PlannedLayer* before = nullptr;
  for (const PlannedLayer& planned : chunk) {
    if (!before || !holds_like(job, *before, planned))
      each = parameters_of(job, planned, only_trained);
    n += each;
    before = &planned;
  }
  return n;
}

std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& planned, bool only_trained) {
  return parameters_of(job, planned, only_trained).all();
}

std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained) {
  return parameters_of(job, chunk, only_trained).all();
}

bool is_quantised(const Job& job, const PlannedLayer& planned) {
  return planned.layer.kind == LayerKind::block && is_llm(job.model, planned.layer) &&
         mllmsim::is_quantised(job.software.precision.format);
}

RankParameters gathered_layer_bytes(const Job& job, const PlannedLayer& planned,
                                    bool only_trained) {
  const Precision& precision = job.software.precision;
  const RankParameters n = parameters_of(job, planned, only_trained);
  if (!precision.fp8_param_gather || !is_quantised(job, planned))
    return {precision.parameter_bytes * n.dense, precision.parameter_bytes * n.experts};
  const double each = bytes_of(precision.format);
  return {scaled(Bytes{n.dense}, each).value, scaled(Bytes{n.experts}, each).value};
}

Bytes gradients_of(const Job& job, const PlannedLayer& layer) {
  const Parallelism& p = job.parallelism;
  const RankParameters n = parameters_of(job, layer, true);
  const auto shard = [&](std::int64_t parameters, int ranks) {
    return p.zero_stage >= 2 ? parameters / ranks : parameters;
  };
  return Bytes{job.software.precision.grad_bytes_per_parameter *
               (shard(n.dense, p.shard_ranks()) + shard(n.experts, p.expert_data_ranks()))};
}

bool copies_gradients(const Job& job) {
  return job.software.ddp_copies && job.parallelism.zero_stage == 0 &&
         job.parallelism.gradient_ranks() > 1;
}

bool gradients_appear(const Job& job, std::size_t micro_batches) {
  return job.software.grads_start_empty && !(copies_gradients(job) && micro_batches == 1);
}

bool scatters_gradients(const Job& job) {
  const int stage = job.parallelism.zero_stage;
  return stage >= 1 && stage <= 2 && job.software.reduce_scatter_grads;
}

}  // namespace mllmsim::lower
