#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

std::vector<TimedKernel> llm_forward(const LayerSetting& s, const Llm& llm, std::int64_t tokens,
                                     std::int64_t image_tokens, std::int64_t deepstack_tokens) {
  const std::int64_t h = llm.blocks.hidden_size;
  const bool scatter = s.sequence_parallel && image_tokens == 0;
  KernelList list(s);
  list.memory("embedding", MemoryOp::embedding, tokens, h, kBf16 + kBf16);
  if (s.tp() > 1) list.elementwise("clear other ranks' rows", tokens * h, kBf16);
  list.collective(scatter ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                  s.activation(tokens * h));
  if (!llm.blocks.rotary)
    list.elementwise("positions", (scatter ? s.rows(tokens) : tokens) * h, kBf16 + kBf16 + kBf16);
  if (image_tokens > 0) list.elementwise("insert image tokens", image_tokens * h, kBf16 + kBf16);
  if (deepstack_tokens > 0)
    list.elementwise("add deepstack features", deepstack_tokens * h, kBf16 + kBf16 + kBf16);
  if (s.software.dropout) list.elementwise("dropout", s.rows(tokens) * h, kBf16 + kBf16 + kMask);
  return list.take();
}

std::vector<TimedKernel> llm_backward(const LayerSetting& s, const Llm& llm, std::int64_t tokens,
                                      std::int64_t image_tokens, std::int64_t deepstack_tokens) {
  const std::int64_t h = llm.blocks.hidden_size;
  const std::int64_t weights = s.vocabulary_shard(llm.vocab_size) * h;
  KernelList list(s);
  if (s.software.dropout)
    list.elementwise("dropout backward", s.rows(tokens) * h, kBf16 + kBf16 + kMask);
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, s.activation(tokens * h));
  if (image_tokens > 0 && s.input_gradient)
    list.elementwise("gather image token gradients", (image_tokens + deepstack_tokens) * h,
                     kBf16 + kBf16);
  if (s.trained) {
    list.elementwise("zero embedding gradient", weights, kBf16);
    list.memory("embedding backward", MemoryOp::embedding, tokens, h, kBf16 + kBf16 + kBf16);
    list.elementwise("accumulate embedding gradient", weights,
                     kBf16 + std::int64_t{2} * s.software.precision.grad_bytes_per_parameter);
  }
  return list.take();
}

}  // namespace

LayerKernels encoder_embedding_kernels(const LayerSetting& s, const Encoder& encoder,
                                       std::int64_t tokens) {
  if (encoder.patch_values == 0) return {};
  const std::int64_t h = encoder.blocks.hidden_size, values = encoder.patch_values;
  KernelList forward(s);
  forward.gemm("patch embedding", {tokens, h, values});
  bias_forward(forward, tokens * h);
  const bool learned = !encoder.blocks.rotary || encoder.position_embeddings > 0;
  if (!encoder.blocks.rotary) forward.elementwise("class token", tokens * h, kBf16 + kBf16);
  if (learned) forward.elementwise("positions", tokens * h, kBf16 + kBf16 + kBf16);

  KernelList backward(s);
  if (s.has_backward()) {
    if (s.sequence_parallel)
      backward.collective(CollectiveOp::all_gather, s.activation(tokens * h));
    if (learned) backward.elementwise("position gradient", tokens * h, kBf16);
    bias_backward(backward, s, tokens * h);
    backward.gemm("patch embedding weight gradient",
                  {values, h, tokens, GemmPass::weight_gradient});
  }
  return {forward.take(), backward.take()};
}

LayerKernels llm_embedding_kernels(const LayerSetting& s, const Llm& llm, std::int64_t tokens,
                                   std::int64_t image_tokens, std::int64_t deepstack_tokens) {
  LayerKernels kernels{llm_forward(s, llm, tokens, image_tokens, deepstack_tokens), {}};
  if (s.has_backward())
    kernels.backward = llm_backward(s, llm, tokens, image_tokens, deepstack_tokens);
  return kernels;
}

}  // namespace mllmsim::costs
