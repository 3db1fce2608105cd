// How a model is spread over GPUs, in Megatron's words, and where each rank sits.
//
// Ranks are laid out tp fastest, then dp, then pp:
//   rank = tp + TP * (dp + DP * pp).
// With use_tp_pp_dp_mapping, pp comes before dp,
//   rank = tp + TP * (pp + PP * dp),
// so that a pipeline fills nodes and gradients cross them.
#pragma once

#include <cstdint>

#include "sim/base/enum_names.hpp"

namespace mllmsim {

enum class Recompute : std::uint8_t { none, selective, full };
template <>
struct Names<Recompute> {
  static constexpr std::array<std::string_view, 3> list{"none", "selective", "full"};
};

struct Parallelism {
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  // Model chunks per pipeline rank (Megatron's virtual pipeline size).
  int virtual_pipeline_stages = 1;
  int data_parallel_size = 1;  // derived: GPUs / (tp * pp)
  bool sequence_parallel = false;
  // 0: all-reduce; 1: distributed optimizer; 3: parameters sharded too (needs pp = 1).
  int zero_stage = 0;
  bool use_tp_pp_dp_mapping = false;
  std::int64_t micro_batch_size = 1;
  std::int64_t global_batch_size = 1;

  int world_size() const {
    return tensor_model_parallel_size * pipeline_model_parallel_size * data_parallel_size;
  }
  std::int64_t micro_batches() const {  // of one pipeline in one step
    return global_batch_size / (micro_batch_size * data_parallel_size);
  }
  int rank(int tp, int dp, int pp) const {
    const int outer = use_tp_pp_dp_mapping ? pp + pipeline_model_parallel_size * dp
                                           : dp + data_parallel_size * pp;
    return tp + tensor_model_parallel_size * outer;
  }
};

}  // namespace mllmsim
