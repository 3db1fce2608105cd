// What the training framework does, stated once per framework generation (scenarios/software); not
// a property of model or machine.
//
// A default is Megatron-Core's of 2024, with the data-parallel overlaps that runs turn on. Where
// each comes from is listed with the keys of scenarios (scenarios/read/software_reader.cpp), which
// `mllmsim list settings` and reports show.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/world/memory_settings.hpp"
#include "sim/world/precision.hpp"

namespace mllmsim {

struct Software {
  Precision precision;

  // Flash kernels; otherwise separate batched GEMMs, scale-mask-softmax and dropout.
  bool flash_attention = true;
  // Which FlashAttention the framework has: 1, 2 or 3; 0, or one newer than what was measured, is
  // what the calibration measured.
  int flash_attention_generation = 0;
  // Fused bias, activation, dropout, residual and rotary; otherwise each its own kernel, and
  // attention copies its inputs and output between layouts.
  bool fused_kernels = true;
  // Cross entropy in two passes over bf16 logits, the second of which leaves their gradient there
  // (Transformer Engine's); otherwise one pass over fp32 logits per operator.
  bool fused_cross_entropy = false;
  // One kernel per norm (Apex, Transformer Engine, flash-attn);
  // otherwise RMSNorm operator by operator.
  bool fused_norms = true;
  // Scale, mask and softmax of unfused attention in one kernel: rows up to this long, matrices
  // (sequences times heads) in multiples of this many. Others fall back to PyTorch's operators.
  std::int64_t fused_softmax_longest_row = 4096;
  std::int64_t fused_softmax_matrices = 4;
  // Gate and up projection of a gated MLP are one GEMM; otherwise two, and with sequence parallel
  // each gathers the input for itself.
  bool joint_gate_up = true;
  // Sequence parallelism splits the tokens of a micro-batch's tiles together, padded to a multiple
  // of tp; otherwise each tile's, which must divide.
  bool sequence_parallel_over_tiles = false;
  // Norms of q and k over all heads, on tp ranks that hold some of them: gather q and k, normalise
  // them whole on every rank and split them again; otherwise ranks add up sums of squares.
  bool gather_qk_norm = false;
  // Hidden and attention dropout, with their masks in memory.
  bool dropout = false;
  // The vocabulary is padded to a multiple of this times tp.
  std::int64_t make_vocab_size_divisible_by = 128;

  // Context parallelism: each cp rank encodes 1/cp of the images, and all gather what they become;
  // otherwise every rank encodes all of them.
  bool split_encoders_over_cp = false;

  // zero_stage 1 and 2: only the first all-gather of parameters is exposed.
  bool overlap_param_gather = true;
  // Only the last reduce-scatter (or all-reduce) of gradients is exposed.
  bool overlap_grad_reduce = true;
  // zero_stage 1, 2: gradients are reduce-scattered; otherwise all-reduced, though a rank updates
  // only its own share (DeepSpeed's bf16 optimizer).
  bool reduce_scatter_grads = true;
  // Parameters whose gradients are reduced together: so many, and more for many replicas so that
  // shards stay large.
  std::int64_t ddp_bucket_size = 40'000'000;
  std::int64_t ddp_bucket_size_per_replica = 1'000'000;
  std::int64_t bucket_parameters(int replicas) const {
    return std::max(ddp_bucket_size, ddp_bucket_size_per_replica * replicas);
  }
  // tp communication of a backward runs beside its GEMMs (Megatron since 2022).
  bool overlap_tp_backward = true;
  // tp communication of a forward, and the gather before a backward, run beside GEMMs cut into
  // pieces (Megatron's --tp-comm-overlap; needs sequence parallelism).
  bool overlap_tp_forward = false;
  int tp_overlap_pieces = 4;
  // Passes go on while activations and gradients travel between stages; otherwise passes and
  // transfers take turns (Megatron before mid-2023, DeepSpeed).
  bool overlap_p2p = true;
  // Each tp rank sends 1/tp of a stage boundary; always so with sequence parallelism.
  bool scatter_gather_p2p = true;
  // zero_stage 3: layers whose parameters are gathered ahead of use, and collectives that a layer's
  // parameters (and gradients) take: one where they are flattened (FSDP), one per matrix where each
  // is gathered for itself (DeepSpeed).
  int zero3_prefetch_layers = 1;
  int zero3_collectives_per_layer = 1;
  // These collectives have a tensor for each rank: every one is copied by a kernel of its own, and
  // launching those takes host_time_per_kernel each (torch.distributed.all_gather, not
  // all_gather_into_tensor).
  bool zero3_tensor_per_rank = false;

  // Time the CPU needs to launch one kernel (Python, dispatcher, autograd). It runs ahead of the
  // GPU, so this counts only where a layer's launches take longer than its kernels: small layers,
  // small micro-batches, high tp.
  Seconds host_time_per_kernel{8e-6};
  // Layers are replayed as graphs: the GPU does not wait for launches.
  bool cuda_graphs = false;
  // The same for what comes before the first kernel of a pass, forward or backward: the schedule,
  // buffers, the batch and its masks, autograd. It shows where the CPU waits for transfers between
  // stages (overlap_p2p = false) and so starts every pass from an idle GPU.
  Seconds host_time_per_pass{0.5e-3};

  // Memory traffic to add a micro-batch's weight gradients to the step's:
  //    0  the GEMM does it (Megatron's gradient_accumulation_fusion)
  //   10  a kernel of its own (read 2 + 4, write 4); 6 for fp16 gradients
  //   18  DeepSpeed's bf16 optimizer, which also zeroes bf16 gradients and adds to them
  int grad_accumulation_bytes_per_parameter = 0;

  MemorySettings memory;
  Bytes memory_reserve{};  // kept free for what no other name covers
};

}  // namespace mllmsim
