// What a framework and its libraries hold in a GPU's memory beside a model's own tensors, and how
// PyTorch's allocator is set; keys of scenarios' `software` with a source each
// (scenarios/read/software_reader.cpp).
#pragma once

#include "sim/base/units.hpp"

namespace mllmsim {

// PYTORCH_CUDA_ALLOC_CONF, with PyTorch's defaults.
struct AllocatorSettings {
  bool expandable_segments = false;
  Bytes max_split_size{};      // blocks from this size on are not split; 0: all are
  double memory_fraction = 0;  // of the GPU's memory that it may take; 0: not set
  // Of the memory it may take; 0: off. PyTorch looks at it only where memory_fraction is set.
  double garbage_collection_threshold = 0;

  bool operator==(const AllocatorSettings&) const = default;
};

struct MemorySettings {
  // Gradients in the parameters' precision, kept beside the main ones all step long: DeepSpeed's
  // bf16 optimizer. Megatron's have no life of their own.
  int model_grad_bytes_per_parameter = 0;
  // Of a parameter that a rank updates, while the optimizer runs: an fp32 copy of its gradient (4)
  // and the flat one that it is made of.
  int optimizer_step_bytes_per_parameter = 0;
  // Copies of gradients that replicas reduce, at the end of a step: bytes each, of so many
  // parameters at once or of one larger tensor; 0: of all of them.
  int reduce_copy_bytes_per_parameter = 0;
  std::int64_t reduce_copy_parameters = 0;
  // Of the largest gradient's share that a rank updates: copies to look for overflow, for its norm.
  int overflow_check_bytes_per_parameter = 0;
  int grad_norm_bytes_per_parameter = 0;
  // Of the largest gradient: its copy in the precision that gradients are added up in, after every
  // backward.
  int grad_cast_bytes_per_parameter = 0;
  // A stage keeps its output until the backward (DeepSpeed's pipeline); otherwise it is freed once
  // sent (Megatron's deallocate_output_tensor).
  bool keep_stage_outputs = false;
  // What is kept of it is split over tp ranks (DeepSpeed's PartitionedTensor).
  bool partition_stage_outputs = false;
  // Flash attention runs batch first in layers that run sequence first: of more than one sequence
  // its output and a transposed copy are both kept.
  bool transpose_attention_output = false;
  // Kept of each logit for the backward: its fp32 softmax; 2 where a fused loss turns bf16 logits
  // into their gradient in place (flash-attn, Transformer Engine).
  int logits_saved_bytes = 4;
  // Beside that: 2 for the bf16 logits or their gradient (Megatron); 8 where fp32 logits are
  // shifted by a copy and the gradient is one more (Hugging Face).
  int logits_working_bytes = 2;
  // The head's backward makes a gradient of its weights in the model's precision: an empty one for
  // autograd in Megatron-Core, whose GEMM adds to the main gradients.
  bool head_weight_gradient = true;
  Bytes gemm_workspaces{96LL << 20};  // of cuBLAS in two threads and of Transformer Engine
  // Beside those, for experts' products in several streams: Transformer Engine's has four.
  Bytes grouped_gemm_workspaces{128LL << 20};
  // Where tp communication overlaps products: buffers that gather, of Transformer Engine since 2.7;
  // 6 before, without those of the weight gradients behind attention and MLP.
  int tp_overlap_gather_buffers = 8;
  Bytes context{800LL << 20};  // CUDA's context, kernels of all libraries
  Bytes per_communicator{300LL << 20};
  AllocatorSettings allocator;

  bool operator==(const MemorySettings&) const = default;
};

}  // namespace mllmsim
