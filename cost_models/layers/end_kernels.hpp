// The layers at the ends of a module: embeddings, projector, head.
//
// - Encoder embedding: patches through one GEMM that every rank repeats, then class token and
//   positions; nothing if the encoder has no patch_values.
// - LLM embedding: vocabulary split over ranks, so looked-up rows are summed over them. With images
//   the sum is complete on every rank (an image token can be anywhere) before projected tokens
//   replace rows and sequence parallelism takes its share; without images it is reduce-scattered.
//   Its weight gradient is dense, as PyTorch's: zeroed, scattered into, added to the main gradient.
// - Projector: pixel shuffle (two copies), LayerNorm, GEMMs with GELU between. Pairs of GEMMs are
//   split over ranks by columns, then rows; an odd last one is repeated on every rank. Its tokens
//   are not sequence-parallel. DeepStack repeats it for every further feature. A pooling projector
//   reads all tokens and writes those that are left. A resampler comes behind the GEMMs, which see
//   all tokens then; every rank runs all of it.
// - Head: final norm, logits, and Megatron's vocabulary-parallel cross entropy, which is one pass
//   over fp32 logits per operator whatever else is fused; once more for every token predicted.
#pragma once

#include "cost_models/layers/layer_kernels.hpp"

namespace mllmsim::costs {

struct LayerKernels {
  std::vector<TimedKernel> forward, backward;
};

LayerKernels encoder_embedding_kernels(const LayerSetting& s, const Encoder& encoder,
                                       std::int64_t tokens);
// deepstack_tokens: image tokens times the features that come after the first, which are added to
// the stream after the first blocks; the embedding is charged with all of it.
LayerKernels llm_embedding_kernels(const LayerSetting& s, const Llm& llm, std::int64_t tokens,
                                   std::int64_t image_tokens, std::int64_t deepstack_tokens = 0);
// What the LLM gets of an encoder's batch.
std::int64_t projected_tokens(const Encoder& encoder, const TokenBatch& batch);
// Rows of the projector's GEMMs.
std::int64_t projector_rows(const Encoder& encoder, const TokenBatch& batch);
// The sequences of a resampler: the latents of a tile, which is their keys.
TokenBatch latents_of(const Encoder& encoder, const TokenBatch& batch);
LayerSetting resampler_setting(const LayerSetting& projector);
std::int64_t projected_width(const Encoder& encoder);  // of each of them
LayerKernels projector_kernels(const LayerSetting& s, const Encoder& encoder,
                               const TokenBatch& batch);
LayerKernels head_kernels(const LayerSetting& s, const Llm& llm, std::int64_t tokens);

}  // namespace mllmsim::costs
