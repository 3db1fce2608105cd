#include "scenarios/read/software_reader.hpp"

#include <fmt/format.h>

#include <concepts>

#include "scenarios/tree/toml_reader.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr Range kBytes{0, 64}, kParameters{1, 1e12}, kUpToParameters{0, 1e12};
constexpr const char* kFused = "code: Megatron-Core fuses unless told not to";
constexpr const char* kSoftmax = "code: Megatron's FusedScaleMaskSoftmax";
constexpr const char* kAllocator = "code: PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kBucket = "code: Megatron-Core's DistributedDataParallelConfig";

// What is held in memory; see sim/world/memory_settings.hpp.
template <class F>
void each_memory_field(Software& s, F field) {
  MemorySettings& m = s.memory;
  field("model_grad_bytes_per_parameter", m.model_grad_bytes_per_parameter,
        "code: Megatron adds up in its main gradients at once", kBytes);
  field("optimizer_step_bytes_per_parameter", m.optimizer_step_bytes_per_parameter,
        "code: Megatron-Core updates from its main gradients", kBytes);
  field("reduce_copy_bytes_per_parameter", m.reduce_copy_bytes_per_parameter,
        "code: Megatron reduces main gradients in place", kBytes);
  field("reduce_copy_parameters", m.reduce_copy_parameters,
        "code: Megatron reduces main gradients in place", kUpToParameters);
  field("overflow_check_bytes_per_parameter", m.overflow_check_bytes_per_parameter,
        "code: Megatron's multi_tensor_scale makes no copies", kBytes);
  field("grad_norm_bytes_per_parameter", m.grad_norm_bytes_per_parameter,
        "code: Megatron's multi_tensor_l2norm makes no copies", kBytes);
  field("grad_cast_bytes_per_parameter", m.grad_cast_bytes_per_parameter,
        "code: Megatron's weight gradients add to fp32 in their GEMM", kBytes);
  field("keep_stage_outputs", m.keep_stage_outputs, "code: Megatron's deallocate_pipeline_outputs");
  field("partition_stage_outputs", m.partition_stage_outputs,
        "code: Megatron sends what its layers return");
  field("transpose_attention_output", m.transpose_attention_output,
        "measurement: Megatron-LM's CI on H100, where cuDNN's attention runs sequence first");
  field("logits_saved_bytes", m.logits_saved_bytes,
        "code: Megatron's vocab_parallel_cross_entropy keeps the softmax", kBytes);
  field("logits_working_bytes", m.logits_working_bytes,
        "code: Megatron's vocab_parallel_cross_entropy works in place", kBytes);
  field("head_weight_gradient", m.head_weight_gradient,
        "code: Megatron-Core since August 2023 (tensor_parallel/layers.py)");
  field("gemm_workspaces", m.gemm_workspaces,
        "code: PyTorch's 32 MiB per cuBLAS handle of two threads, Transformer Engine's 32 "
        "MiB, on Hopper and later");
  field("grouped_gemm_workspaces", m.grouped_gemm_workspaces,
        "code: Transformer Engine's get_multi_stream_cublas_workspace, four of 32 MiB, on Hopper "
        "and later");
  field("tp_overlap_gather_buffers", m.tp_overlap_gather_buffers,
        "code: Transformer Engine 2.7 and later (initialize_ub)", Range{0, 8});
  field("context_memory", m.context, "estimate: CUDA's context with PyTorch's and NCCL's kernels");
  field("memory_per_communicator", m.per_communicator,
        "estimate: 16 NCCL channels, ring and tree, 9.2 MiB of buffers per connection");
  field("expandable_segments", m.allocator.expandable_segments, kAllocator);
  field("max_split_size", m.allocator.max_split_size, kAllocator);
  field("per_process_memory_fraction", m.allocator.memory_fraction, kAllocator, Range{0, 1});
  field("garbage_collection_threshold", m.allocator.garbage_collection_threshold, kAllocator,
        Range{0, 1});
  field("memory_reserve", s.memory_reserve, "assumption: nothing else is on the GPU");
}

// field(key, member, where the default comes from[, range]) for every key.
template <class F>
void each_field(Software& s, F field) {
  field("flash_attention", s.flash_attention, "code: Megatron-Core's --attention-backend auto");
  field("flash_attention_generation", s.flash_attention_generation,
        "the calibration: what it measured", Range{0, 3});
  field("fused_kernels", s.fused_kernels, kFused);
  field("strided_attention", s.strided_attention,
        "assumption: flash kernels of eager models want their own layout");
  field("fused_norms", s.fused_norms, kFused);
  field("recompute_flash_attention", s.recompute_flash_attention,
        "code: Megatron-Core checkpoints whatever its core attention is");
  field("recompute_early_stop", s.recompute_early_stop,
        "code: Megatron's CheckpointFunction runs all of a block again");
  field("fused_cross_entropy", s.fused_cross_entropy,
        "documented: Megatron, off unless --cross-entropy-loss-fusion");
  field("torch_cross_entropy", s.torch_cross_entropy,
        "code: Megatron's vocab_parallel_cross_entropy, operator by operator");
  field("split_encoders_over_cp", s.split_encoders_over_cp,
        "documented: Megatron's multimodal models encode all images on every cp rank");
  field("launch_blocking", s.launch_blocking,
        "documented: CUDA, off unless CUDA_LAUNCH_BLOCKING=1");
  field("cuda_graphs", s.cuda_graphs, "documented: Megatron, off unless --cuda-graph-impl");
  field("cuda_graph_attention", s.cuda_graph_attention,
        "documented: Megatron, off unless --cuda-graph-scope attn");
  field("cuda_graph_router", s.cuda_graph_router,
        "documented: Megatron, off unless --cuda-graph-scope moe_router");
  field("rotary_per_sample", s.rotary_per_sample,
        "code: Megatron-Core's fused kernel, or samples that are not packed");
  field("moe_token_dispatcher", s.moe_token_dispatcher,
        "assumption: Megatron's --moe-token-dispatcher-type alltoall; its default, allgather, is "
        "for tests");
  field("moe_hybridep_num_sms", s.moe_hybridep_num_sms,
        "documented: Megatron's --moe-hybridep-num-sms", Range{1, 256});
  field("moe_router_fusion", s.moe_router_fusion,
        "documented: Megatron, off unless --moe-router-fusion");
  field("moe_load_imbalance", s.moe_load_imbalance,
        "assumption: balanced, as a router's auxiliary loss aims for", Range{1, 1e4});
  field("moe_expert_capacity_factor", s.moe_expert_capacity_factor,
        "documented: Megatron, dropless unless --moe-expert-capacity-factor", Range{0, 1e4});
  field("overlap_moe_expert_parallel_comm", s.overlap_moe_expert_parallel_comm,
        "documented: Megatron, off unless --overlap-moe-expert-parallel-comm");
  field("moe_shared_expert_overlap", s.moe_shared_expert_overlap,
        "documented: Megatron, off unless --moe-shared-expert-overlap");
  field("moe_fused_grouped_mlp", s.moe_fused_grouped_mlp,
        "code: Transformer Engine's GroupedLinear launches a product per expert");
  field("fp8_current_scaling", s.precision.fp8_current_scaling,
        "documented: Megatron's --fp8-recipe is delayed unless told otherwise");
  field("fp8_param_gather", s.precision.fp8_param_gather,
        "documented: Megatron, off unless --fp8-param-gather");
  field("fused_softmax_longest_row", s.fused_softmax_longest_row, kSoftmax, Range{0, 1e6});
  field("fused_softmax_matrices", s.fused_softmax_matrices, kSoftmax, Range{1, 1e6});
  field("gather_qk_norm", s.gather_qk_norm, "assumption: a framework sums over ranks if it can");
  field("joint_gate_up", s.joint_gate_up,
        "code: Megatron-Core's linear_fc1 holds gate and up projection");
  field("joint_qkv", s.joint_qkv, "code: Megatron-Core's linear_qkv holds all three");
  field("average_norm_weights", s.average_norm_weights,
        "code: Megatron adds up the gradients of what tp ranks hold alike");
  field("sequence_parallel_over_tiles", s.sequence_parallel_over_tiles,
        "code: Megatron splits a sequence's own dimension, which must divide");
  field("dropout", s.dropout, "assumption: large models train without");
  field("make_vocab_size_divisible_by", s.make_vocab_size_divisible_by,
        "code: Megatron's --make-vocab-size-divisible-by");
  field("overlap_param_gather", s.overlap_param_gather,
        "assumption: a run gives Megatron's --overlap-param-gather");
  field("overlap_grad_reduce", s.overlap_grad_reduce,
        "assumption: a run gives Megatron's --overlap-grad-reduce");
  field("reduce_scatter_grads", s.reduce_scatter_grads, kBucket);
  field("ddp_copies", s.ddp_copies, "code: Megatron's weight gradients add to its buckets");
  field("ddp_bucket_size", s.ddp_bucket_size, kBucket, kParameters);
  field("ddp_bucket_size_per_replica", s.ddp_bucket_size_per_replica, kBucket, kUpToParameters);
  field("overlap_tp_backward", s.overlap_tp_backward,
        "code: Megatron, unless --no-async-tensor-model-parallel-allreduce");
  field("overlap_tp_all_reduce", s.overlap_tp_all_reduce,
        "code: Megatron's LinearWithGradAccumulationAndAsyncCommunication");
  field("overlap_tp_forward", s.overlap_tp_forward, "code: Megatron, off unless --tp-comm-overlap");
  field("tp_overlap_pieces", s.tp_overlap_pieces,
        "code: num_splits of Transformer Engine's pipelined reductions (gathers: a piece per rank)",
        Range{1, 1024});
  field("overlap_p2p", s.overlap_p2p,
        "assumption: as Megatron's interleaved schedules unless --no-overlap-p2p-communication");
  field("scatter_gather_p2p", s.scatter_gather_p2p,
        "code: Megatron, unless --no-scatter-gather-tensors-in-pipeline");
  field("zero3_prefetch_layers", s.zero3_prefetch_layers, "assumption: one layer ahead, as FSDP",
        Range{0, 1e4});
  field("zero3_collectives_per_layer", s.zero3_collectives_per_layer,
        "code: PyTorch's FSDP flattens the parameters of a unit", Range{1, 1000});
  field("zero3_copies", s.zero3_copies,
        "code: FSDP's flat parameters and DeepSpeed's partitions are views of one buffer");
  field("zero3_tensor_per_rank", s.zero3_tensor_per_rank,
        "code: FSDP, and DeepSpeed since 0.5.8, gather into one tensor");
  field("zero3_max_reuse_distance", s.zero3_max_reuse_distance,
        "code: FSDP recomputes and goes backward within one unit", kUpToParameters);
  field("host_time_per_kernel", s.host_time_per_kernel,
        "estimate: PyTorch's dispatcher and autograd");
  field("host_time_per_expert_kernel", s.host_time_per_expert_kernel,
        "measurement: Transformer Engine's pull request 3134: products of 8 experts, 128 x 2048 x "
        "2048 each, take 33 us each on a Blackwell node whose CPU is not named, taken to be a "
        "Grace (2.7 times)");
  field("host_time_per_pass", s.host_time_per_pass,
        "fit: half of the 1 ms that was chosen for forwards with zero bubble and MegaScale");
  field("grad_accumulation_bytes_per_parameter", s.grad_accumulation_bytes_per_parameter,
        "code: Megatron, unless --no-gradient-accumulation-fusion", kBytes);
  field("grads_start_empty", s.grads_start_empty,
        "code: Megatron keeps its main gradients and zeroes them");
  field("grad_reduce_passes", s.grad_reduce_passes,
        "code: Megatron's DDP scales its buckets in place before it reduces them "
        "(distributed/param_and_grad_buffer.py)",
        Range{0, 64});
  field("copy_gathered_parameters", s.copy_gathered_parameters,
        "code: since Megatron-Core 0.6 parameters are views of the buffer that is gathered");
  field("clip_grad", s.clip_grad, "code: Megatron's --clip-grad is 1.0 unless told otherwise");
  field("cpu_offloading_num_layers", s.cpu_offloading_num_layers,
        "code: Megatron-Core's cpu_offloading is off", Range{0, 1e6});
  field("optimizer_offload_fraction", s.optimizer_offload_fraction,
        "documented: Megatron, 0 unless --optimizer-cpu-offload", {0, 1});
  field("grad_bytes_per_parameter", s.precision.grad_bytes_per_parameter,
        "code: Megatron's fp32 main gradients, unless --grad-reduce-in-bf16", kBytes);
  field("sharded_grad_bytes_per_parameter", s.precision.sharded_grad_bytes_per_parameter,
        "code: FSDP and DeepSpeed reduce in the parameters' precision", kBytes);
  field("optimizer_bytes_per_parameter", s.precision.optimizer_bytes_per_parameter,
        "code: fp32 master weights and two Adam moments", kBytes);
  each_memory_field(s, field);
}

std::string text(bool value) { return value ? "true" : "false"; }
template <std::integral Integer>
std::string text(Integer value) {
  return std::to_string(value);
}
template <class Enum>
requires std::is_enum_v<Enum> std::string text(Enum value) {
  return fmt::format("\"{}\"", name_of(value));
}
std::string text(double value) { return fmt::format("{:g}", value); }
std::string text(Seconds value) { return fmt::format("\"{:g} us\"", value.value * 1e6); }
std::string text(Bytes value) {
  const bool small = value.value > 0 && value.value < 1LL << 30;
  return fmt::format("\"{:g} {}\"", static_cast<double>(value.value) / (small ? 1 << 20 : 1 << 30),
                     small ? "MiB" : "GiB");
}

}  // namespace

Software read_software(const Node& table, Problems& problems) {
  TableReader reader(table, "software", problems);
  reader.find("name");  // of the shipped file it is based on
  reader.find("description");
  Software software;
  each_field(software, [&](const char* key, auto& member, const char*, Range range = {}) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, bool> || std::is_enum_v<Member>)
      reader.read(key, member);
    else if constexpr (std::is_arithmetic_v<Member>)
      reader.read(key, member, range);
    else
      reader.read(key, member, Zero::allowed);
  });
  return software;
}

std::vector<SoftwareSetting> software_settings(const Node& table) {
  const Node* name = table.find("name");
  const std::string written = name && name->is<std::string>()
                                  ? name->as<std::string>() + ", or the scenario over it"
                                  : "the scenario";
  std::vector<SoftwareSetting> out;
  Software defaults;
  each_field(defaults, [&](const char* key, auto& value, const char* source, Range = {}) {
    if (const Node* node = table.find(key))
      out.push_back({key, to_inline_toml(*node), written});
    else
      out.push_back({key, text(value), source});
  });
  return out;
}

}  // namespace mllmsim::scenarios
