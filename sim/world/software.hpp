// What the training framework does, stated once per framework generation (scenarios/software); not
// a property of model or machine.
//
// A default is Megatron-Core's of 2024, with the data-parallel overlaps that runs turn on. Where
// each comes from is listed with the keys of scenarios (scenarios/read/software_reader.cpp), which
// `mllmsim list settings` and reports show.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"
#include "sim/world/memory_settings.hpp"
#include "sim/world/precision.hpp"

namespace mllmsim {

// Megatron's --moe-token-dispatcher-type alltoall, and flex with one of its backends:
//   alltoall   NCCL's all-to-all: a token travels once for each of its experts
//   deepep     a token travels once to each rank that has one of its experts, and over the network
//              once to each node (DeepEP); measured
//   hybridep   the same, by kernels that fill NVLink (NVIDIA's HybridEP), as NCCL's all-to-all does
enum class TokenDispatcher : std::uint8_t { alltoall, deepep, hybridep };
template <>
struct Names<TokenDispatcher> {
  static constexpr std::array<std::string_view, 3> list{"alltoall", "deepep", "hybridep"};
};

// What selective recompute runs again (Megatron-Core's --recompute-modules).
enum class RecomputeModule : std::uint8_t {
  core_attn,    // attention between its projections
  layernorm,    // norms that are modules of their own: before latents and before experts
  mla_up_proj,  // from latents to query, key and value
  mlp,          // of blocks without experts, with the norm before it
  moe,          // all of the experts' part
  moe_act,      // experts' activation
  shared_experts,
};
template <>
struct Names<RecomputeModule> {
  static constexpr std::array<std::string_view, 7> list{
      "core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"};
};

class RecomputeModules {
 public:
  constexpr RecomputeModules() = default;
  constexpr void add(RecomputeModule m) { bits_ |= 1U << static_cast<unsigned>(m); }
  constexpr bool has(RecomputeModule m) const { return bits_ >> static_cast<unsigned>(m) & 1U; }
  bool operator==(const RecomputeModules&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

struct Software {
  Precision precision;

  // Of blocks with selective recompute; core_attn unless told otherwise.
  RecomputeModules recompute_modules = [] {
    RecomputeModules m;
    m.add(RecomputeModule::core_attn);
    return m;
  }();
  // core_attn runs flash attention again too (Megatron-Core); otherwise only unfused attention,
  // since flash attention recomputes its scores anyway (Megatron-LM before Megatron-Core).
  bool recompute_flash_attention = true;
  // Full recompute of a block ends with the last thing that its backward reads, so the MLP's second
  // matrix is not multiplied again (torch.utils.checkpoint, use_reentrant=False, since PyTorch
  // 2.1).
  bool recompute_early_stop = false;

  // Flash kernels; otherwise separate batched GEMMs, scale-mask-softmax and dropout.
  bool flash_attention = true;
  // Which FlashAttention the framework has: 1, 2 or 3; 0, or one newer than what was measured, is
  // what the calibration measured.
  int flash_attention_generation = 0;
  // Fused bias, activation, dropout, residual and rotary; otherwise each its own kernel, and
  // attention copies its inputs and output between layouts.
  bool fused_kernels = true;
  // Without fused kernels: flash attention takes views of the joint tensor all the same, and makes
  // its output as the next layer reads it (PyTorch's scaled_dot_product_attention).
  bool strided_attention = false;
  // Cross entropy in two passes over bf16 logits, the second of which leaves their gradient there
  // (Transformer Engine's); otherwise one pass over fp32 logits per operator.
  bool fused_cross_entropy = false;
  // Cross entropy as PyTorch has it: log-softmax and its gradient, one kernel each, over logits in
  // the precision they have; of a vocabulary that is not split over tp ranks.
  bool torch_cross_entropy = false;
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
  // The same of q, k and v; otherwise as many as the checkpoint has (Transformer::packed_qkv).
  bool joint_qkv = true;
  // The weights of a block's norms are averaged over tp ranks before each use, since ranks that
  // see different tokens update them differently (EasyLLM).
  bool average_norm_weights = false;
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

  // How tokens get to experts of other ranks, and their results back.
  TokenDispatcher moe_token_dispatcher = TokenDispatcher::alltoall;
  int moe_hybridep_num_sms = 16;
  // A router's choice and its load balancing loss are a kernel each; otherwise PyTorch's operators.
  bool moe_router_fusion = false;
  // Rows that the busiest rank's experts get over the mean; all ranks wait for it.
  double moe_load_imbalance = 1;
  // Every expert takes so many rows times the mean, dropping or padding; 0: as many as are routed.
  double moe_expert_capacity_factor = 0;
  // Exchanges of tokens run beside the passes of another micro-batch, where a backward and a
  // forward meet.
  bool overlap_moe_expert_parallel_comm = false;
  // They run beside the shared experts.
  bool moe_shared_expert_overlap = false;
  // Activation and quantisation between an expert's matrices are part of their products, and all
  // experts of a rank one launch; otherwise each expert's product is launched for itself.
  bool moe_fused_grouped_mlp = false;

  // zero_stage 1 and 2: only the first all-gather of parameters is exposed.
  bool overlap_param_gather = true;
  // Only the last reduce-scatter (or all-reduce) of gradients is exposed.
  bool overlap_grad_reduce = true;
  // zero_stage 1, 2: gradients are reduce-scattered; otherwise all-reduced, though a rank updates
  // only its own share (DeepSpeed's bf16 optimizer).
  bool reduce_scatter_grads = true;
  // zero_stage 0: gradients are tensors of their own, which the last backward scales into the
  // buckets that replicas reduce (PyTorch's DistributedDataParallel after zero_grad); otherwise
  // backwards add to the buckets themselves. The buckets stay all step long.
  bool ddp_copies = false;
  // Parameters whose gradients are reduced together: so many, and more for many replicas so that
  // shards stay large.
  std::int64_t ddp_bucket_size = 40'000'000;
  std::int64_t ddp_bucket_size_per_replica = 1'000'000;
  std::int64_t bucket_parameters(int replicas) const {
    return std::max(ddp_bucket_size, ddp_bucket_size_per_replica * replicas);
  }
  // tp communication of a backward runs beside its GEMMs (Megatron since 2022).
  bool overlap_tp_backward = true;
  // The same of the all-reduces of layers without sequence parallelism; if not, only gathers and
  // reduce-scatters do (EasyLLM).
  bool overlap_tp_all_reduce = true;
  // tp communication of a forward, and the gather before a backward, run beside GEMMs cut into
  // pieces (Megatron's --tp-comm-overlap; needs sequence parallelism).
  bool overlap_tp_forward = false;
  int tp_overlap_pieces = 4;
  // Passes go on while activations and gradients travel between stages; otherwise passes and
  // transfers take turns (Megatron before mid-2023, DeepSpeed).
  bool overlap_p2p = true;
  // Each tp rank sends 1/tp of a stage boundary. With sequence parallelism that is all it has, but
  // behind layers that are not split so, whose outputs every rank sends whole.
  bool scatter_gather_p2p = true;
  // zero_stage 3: layers whose parameters are gathered ahead of use, and collectives that a layer's
  // parameters (and gradients) take: one where they are flattened (FSDP), one per matrix where each
  // is gathered for itself (DeepSpeed).
  int zero3_prefetch_layers = 1;
  int zero3_collectives_per_layer = 1;
  // These collectives have a tensor for each rank (torch.distributed.all_gather, not
  // all_gather_into_tensor). The CPU makes a view for each, and one of the whole before it where
  // gradients are scattered, and launches a copy: operators of host_time_per_kernel each.
  bool zero3_tensor_per_rank = false;
  // Each parameter is a tensor of its own, copied into and out of the buffer that travels, and so
  // is each gradient (FSDP2); otherwise parameters are views of one buffer (FSDP, DeepSpeed).
  bool zero3_copies = false;
  // What a recomputed forward gathered is kept for its backward if fewer parameters than this are
  // used in between, and gathered again otherwise; 0: always kept.
  std::int64_t zero3_max_reuse_distance = 0;

  // Time the CPU needs to launch one kernel (Python, dispatcher, autograd). It runs ahead of the
  // GPU, so this counts only where a layer's launches take longer than its kernels: small layers,
  // small micro-batches, high tp.
  Seconds host_time_per_kernel{8e-6};
  // The same of a kernel that C++ launches, in a loop over experts or beside another: a product
  // (descriptors, a look-up of its algorithm, the launch), a part of quantising, scales' layout.
  Seconds host_time_per_expert_kernel{12e-6};
  // Micro-batches are packs whose samples are turned to their positions one after another, q and k
  // apart (Megatron-Core until 17 August 2026 without --apply-rope-fusion); otherwise all at once.
  bool rotary_per_sample = false;
  // Every launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1), so the CPU never runs ahead.
  bool launch_blocking = false;
  // Layers are replayed as graphs: the GPU does not wait for launches.
  bool cuda_graphs = false;
  // The same of parts of a layer: attention up to its residual, the router with the norm before it.
  bool cuda_graph_attention = false;
  bool cuda_graph_router = false;
  // The same for what comes before the first kernel of a pass, forward or backward: the schedule,
  // buffers, the batch and its masks, autograd. It shows where the CPU waits for transfers between
  // stages (overlap_p2p = false) and so starts every pass from an idle GPU.
  Seconds host_time_per_pass{0.5e-3};

  // Memory traffic to add a micro-batch's weight gradients to the step's:
  //    0  the GEMM does it (Megatron's gradient_accumulation_fusion)
  //   10  a kernel of its own (read 2 + 4, write 4); 6 for fp16 gradients
  //   18  DeepSpeed's bf16 optimizer: casts bf16 gradients (2 + 4), adds (4 + 4 + 4)
  int grad_accumulation_bytes_per_parameter = 0;
  // Gradients do not exist until the first micro-batch makes them (PyTorch's zero_grad): that one
  // adds nothing, nothing is zeroed, and until its backward they take no memory.
  bool grads_start_empty = false;
  // zero_stage 0 and 1: reads and writes of every gradient that a rank holds, around its reduction:
  //    2  divided by the number of replicas in place (Megatron's DDP)
  //    6  also flattened before and copied back after (Megatron's local DDP of 2021, DeepSpeed)
  //    0  NCCL averages (Megatron-Core's average_in_collective)
  int grad_reduce_passes = 2;
  // zero_stage 1: parameters are gathered into a buffer and copied out of it (Megatron in 2023).
  bool copy_gathered_parameters = false;
  // The gradient's norm is taken over all ranks, which wait for it, and gradients are scaled by it.
  bool clip_grad = true;
  // Of the optimizer's states, what lies in the CPU's memory and is updated there: Megatron's
  // --optimizer-cpu-offload with --optimizer-offload-fraction, DeepSpeed's offload_optimizer.
  double optimizer_offload_fraction = 0;
  // Of the LLM's blocks, the first so many whose activations lie in the CPU's memory from forward
  // to backward (Megatron-Core's cpu_offloading_num_layers, by Transformer Engine).
  int cpu_offloading_num_layers = 0;

  MemorySettings memory;
  Bytes memory_reserve{};  // kept free for what no other name covers

  bool operator==(const Software&) const = default;
};

}  // namespace mllmsim
