// What a layer keeps on one GPU from its forward to its backward, tensor by tensor.
//
// For a GPT block with dropout and unfused attention the list adds up to Korthikanti et al. 2022,
// "Reducing Activation Recomputation in Large Transformer Models", Table 2 (s b h = tokens times
// hidden, a heads, t = tp):
//
//   no sequence parallel      s b h (10 + 24/t + 5 a s / (h t))
//   sequence parallel         s b h (34/t + 5 a s / (h t))
//   selective recompute       the same without 5 a s / (h t)
//   full recompute            2 s b h, the block's input (1/t of it with sequence parallel)
//
// Flash attention that runs batch first in sequence-first layers (transpose_attention_output) adds
// 2 s b h / t, its output in the other layout, if there is more than one sequence to transpose.
//
// Tensors that only a weight gradient reads are not kept by frozen layers; a layer without a
// backward keeps nothing. Left out: 1/rms and other statistics of one value per row, except flash
// attention's log-sum-exp; buffers that live within one kernel.
#pragma once

#include "cost_models/layers/block_kernels.hpp"

namespace mllmsim::costs {

struct SavedTensor {
  std::string_view name;
  Bytes bytes{};
  bool second_half = false;  // of a block: from the norm before its MLP on
};
Bytes total(const std::vector<SavedTensor>& tensors);

std::vector<SavedTensor> block_activations(const Block& block, const TokenBatch& batch,
                                           Recompute recompute);
// What recompute brings back, at its most beside what is kept. Modules bring back their own: those
// of a block's first half when the second half's backward has given back what was kept for it.
Bytes block_recomputed(const Block& block, const TokenBatch& batch, Recompute recompute);
// Gradients that a backward works with, at their most within the MLP: that of the residual stream
// (gathered as well with sequence parallel), and of the MLP's inner values, before the activation
// or behind it; and a weight gradient of its own where the GEMM does not add it up.
Bytes block_gradients(const Block& block, const TokenBatch& batch);

std::vector<SavedTensor> encoder_embedding_activations(const LayerSetting& s,
                                                       const Encoder& encoder, std::int64_t tokens);
// cross_keys: image tokens that cross-attention reads in many blocks; kept once, here.
std::vector<SavedTensor> llm_embedding_activations(const LayerSetting& s, const Llm& llm,
                                                   std::int64_t tokens, std::int64_t cross_keys);
std::vector<SavedTensor> projector_activations(const LayerSetting& s, const Encoder& encoder,
                                               const TokenBatch& batch);
std::vector<SavedTensor> head_activations(const LayerSetting& s, const Llm& llm,
                                          std::int64_t tokens);
// Logits next to the softmax that is kept: the head's passing peak.
Bytes head_working_memory(const LayerSetting& s, const Llm& llm, std::int64_t tokens);
// Of a backward, beside what is kept of the logits: that, or in place of them their gradient, its
// product's input and gradients of input and weights.
Bytes head_backward_memory(const LayerSetting& s, const Llm& llm, std::int64_t tokens);

}  // namespace mllmsim::costs
