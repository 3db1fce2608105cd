// How a model is spread over GPUs, in Megatron's words, and where each rank sits.
//
// Ranks are laid out tp fastest, then cp, then dp, then pp:
//   rank = tp + TP * (cp + CP * (dp + DP * pp)).
// With use_tp_pp_dp_mapping, pp comes before dp,
//   rank = tp + TP * (cp + CP * (pp + PP * dp)),
// so that a pipeline fills nodes and gradients cross them.
//
// The cp ranks of a replica hold the same parameters and cut its sequences: 2 cp pieces, of which
// rank i has pieces i and 2 cp - 1 - i, so that all have the same causal attention to do. Gradients
// are reduced over dp x cp, and sharding counts both.
//
// Experts have groups of their own, cut out of the same tp x cp x dp ranks of a pipeline stage:
//   rank in the stage = etp + ETP * (ep + EP * edp),
// ep ranks hold different experts, etp ranks cut each of them, and edp ranks hold the same.
//
// Sharded data parallelism (zero_stage 3) shards over dp x cp / data_parallel_replicate_degree
// neighbours; the groups that this leaves are replicas of each other (HSDP).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/enum_names.hpp"

namespace mllmsim {

enum class Recompute : std::uint8_t { none, selective, full };
template <>
struct Names<Recompute> {
  static constexpr std::array<std::string_view, 3> list{"none", "selective", "full"};
};

// How a cp rank gets the keys and values of others (Megatron's --cp-comm-type):
//   p2p         ring: each passes on what it has while it attends to it
//   all_gather  all of them before the attention
//   a2a         all-to-all of heads: a rank has whole sequences of 1/cp of the heads (Ulysses)
enum class CpCommType : std::uint8_t { p2p, all_gather, a2a };
template <>
struct Names<CpCommType> {
  static constexpr std::array<std::string_view, 3> list{"p2p", "all_gather", "a2a"};
};

struct Parallelism {
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  // Model chunks per pipeline rank (Megatron's virtual pipeline size).
  int virtual_pipeline_stages = 1;
  // With virtual stages: micro-batches that a rank takes through one chunk before the next; 0: as
  // many as pipeline ranks.
  std::int64_t microbatch_group_size_per_virtual_pipeline_stage = 0;
  std::int64_t micro_batch_group() const {
    return microbatch_group_size_per_virtual_pipeline_stage > 0
               ? microbatch_group_size_per_virtual_pipeline_stage
               : pipeline_model_parallel_size;
  }
  int context_parallel_size = 1;
  CpCommType cp_comm_type = CpCommType::p2p;
  int expert_model_parallel_size = 1;
  int expert_tensor_parallel_size = 0;  // 0: as tensor_model_parallel_size
  int data_parallel_size = 1;           // derived: GPUs / (tp * cp * pp)
  bool sequence_parallel = false;
  // 0: all-reduce; 1: distributed optimizer; 2: gradients sharded too, so that every micro-batch
  // scatters its own; 3: parameters sharded too (needs pp = 1).
  int zero_stage = 0;
  // zero_stage 3: how many groups hold all parameters (HSDP).
  int data_parallel_replicate_degree = 1;
  // zero_stage 3: backwards gather parameters again; otherwise they stay from forward to backward.
  bool reshard_after_forward = true;
  // zero_stage 3: backwards gather from so many neighbours, which keep a second copy between them
  // (ZeRO++); 1: from all.
  int zero_hpz_partition_size = 1;
  bool use_tp_pp_dp_mapping = false;
  std::int64_t micro_batch_size = 1;
  std::int64_t global_batch_size = 1;

  int world_size() const {
    return tensor_model_parallel_size * context_parallel_size * pipeline_model_parallel_size *
           data_parallel_size;
  }
  // That reduce their gradients together.
  int gradient_ranks() const { return data_parallel_size * context_parallel_size; }
  int expert_tensor_ranks() const {
    return expert_tensor_parallel_size == 0 ? tensor_model_parallel_size
                                            : expert_tensor_parallel_size;
  }
  // Whether experts are spread otherwise than the rest of a layer.
  bool experts_apart() const {
    return expert_model_parallel_size > 1 || expert_tensor_ranks() != tensor_model_parallel_size;
  }
  // That hold the same experts.
  int expert_data_ranks() const {
    return tensor_model_parallel_size * gradient_ranks() /
           (expert_model_parallel_size * expert_tensor_ranks());
  }
  // That share one copy of what zero_stage shards.
  int shard_ranks() const { return gradient_ranks() / data_parallel_replicate_degree; }
  std::int64_t micro_batches() const {  // of one pipeline in one step
    return global_batch_size / (micro_batch_size * data_parallel_size);
  }
  int rank(int tp, int dp, int pp, int cp = 0) const {
    const int outer = use_tp_pp_dp_mapping ? pp + pipeline_model_parallel_size * dp
                                           : dp + data_parallel_size * pp;
    return tp + tensor_model_parallel_size * (cp + context_parallel_size * outer);
  }

  bool operator==(const Parallelism&) const = default;
};

}  // namespace mllmsim
