// How a model is spread over GPUs, in Megatron's words, and where each rank sits.
//
// Ranks are laid out tp fastest, then dp, then pp:
//   rank = tp + TP * (dp + DP * pp).
// With use_tp_pp_dp_mapping, pp comes before dp,
//   rank = tp + TP * (pp + PP * dp),
// so that a pipeline fills nodes and gradients cross them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"

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

// What the training framework does, stated once per framework generation;
// not a property of model or machine.
struct Software {
  // Flash kernels; otherwise separate batched GEMMs, scale-mask-softmax and dropout.
  bool flash_attention = true;
  // Which FlashAttention the framework has: 1, 2 or 3; 0, or one newer than what was measured, is
  // what the calibration measured.
  int flash_attention_generation = 0;
  // Fused bias, activation, dropout, residual and rotary; otherwise each its own kernel, and
  // attention copies its inputs and output between layouts.
  bool fused_kernels = true;
  // One kernel per norm (Apex, Transformer Engine, flash-attn);
  // otherwise RMSNorm operator by operator.
  bool fused_norms = true;
  // Norms of q and k over all heads, on tp ranks that hold some of them: gather q and k, normalise
  // them whole on every rank and split them again; otherwise ranks add up sums of squares.
  bool gather_qk_norm = false;
  // Hidden and attention dropout, with their masks in memory.
  bool dropout = false;

  // zero_stage 1: only the first all-gather of parameters is exposed.
  bool overlap_param_gather = true;
  // Only the last reduce-scatter (or all-reduce) of gradients is exposed.
  bool overlap_grad_reduce = true;
  // zero_stage 1: gradients are reduce-scattered; otherwise all-reduced, though a rank updates only
  // its own share (DeepSpeed's bf16 optimizer).
  bool reduce_scatter_grads = true;
  // tp communication of a backward runs beside its GEMMs (Megatron since 2022).
  bool overlap_tp_backward = true;
  // tp communication of a forward, and the gather before a backward, run beside GEMMs cut into
  // pieces (Megatron's --tp-comm-overlap; needs sequence parallelism).
  bool overlap_tp_forward = false;
  // Passes go on while activations and gradients travel between stages; otherwise passes and
  // transfers take turns (Megatron before mid-2023, DeepSpeed).
  bool overlap_p2p = true;
  // Each tp rank sends 1/tp of a stage boundary; always so with sequence parallelism.
  bool scatter_gather_p2p = true;
  // zero_stage 3: layers whose parameters are gathered ahead of use.
  int zero3_prefetch_layers = 1;

  // Time the CPU needs to launch one kernel (Python, dispatcher, autograd). It runs ahead of the
  // GPU, so this counts only where a layer's launches take longer than its kernels: small layers,
  // small micro-batches, high tp.
  Seconds host_time_per_kernel{8e-6};

  // The same for what comes before the first kernel of a forward: the batch, its masks, Python. It
  // shows where the CPU waits for transfers between stages (overlap_p2p = false) and so starts
  // every pass from an idle GPU.
  Seconds host_time_per_forward{1e-3};

  int grad_bytes_per_parameter = 4;  // fp32 main gradients
  // Memory traffic to add a micro-batch's weight gradients to the step's:
  //    0  the GEMM does it (Megatron's gradient_accumulation_fusion)
  //   10  a kernel of its own (read 2 + 4, write 4); 6 for fp16 gradients
  //   18  DeepSpeed's bf16 optimizer, which also zeroes bf16 gradients and adds to them
  int grad_accumulation_bytes_per_parameter = 0;
  int optimizer_bytes_per_parameter = 12;  // fp32 master weights and two Adam moments
  Bytes memory_reserve{4LL << 30};         // CUDA context, NCCL buffers, fragmentation
};

}  // namespace mllmsim
