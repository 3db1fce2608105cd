// Gated cross-attention on one rank: queries of the stream, keys and values of image tokens, which
// are whole on every rank of a tp group, as a projector leaves them. Each block adds its part to
// the gradient of the image tokens.
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

struct CrossLinears {
  Linear query, key_value;

  explicit CrossLinears(const Block& b)
      : query{"query", "query input gradient", "query weight gradient", b.shape.hidden_size,
              b.shard.q()},
        key_value{"key and value", "key and value input gradient", "key and value weight gradient",
                  b.shape.hidden_size, b.shard.key_value()} {
    if (!b.shape.adapters.qkv) return;
    for (Linear* l : {&query, &key_value}) {
      l->adapter_rank = b.shape.adapters.lora_rank;
      l->dora = b.shape.adapters.use_dora;
    }
  }
};

// Of the image tokens: not split over ranks.
LayerSetting of_images(const LayerSetting& s) {
  LayerSetting images = s;
  images.sequence_parallel = false;
  return images;
}

}  // namespace

void cross_forward(KernelList& list, const Block& b, std::int64_t tokens, std::int64_t keys) {
  const LayerSetting& s = b.setting;
  const Transformer& t = b.shape;
  const CrossLinears linears(b);
  column_forward(list, s, linears.query, tokens);
  if (t.qkv_bias) bias_forward(list, tokens * b.shard.q());
  if (t.qk_norm_per_head) norm_forward(list, s, t.norm, tokens * b.shard.heads, b.shard.head_dim);
  if (keys == 0) return;
  column_forward(list, of_images(s), linears.key_value, keys);
  if (t.qkv_bias) bias_forward(list, keys * b.shard.key_value());
  if (t.qk_norm_per_head) norm_forward(list, s, t.norm, keys * b.shard.kv_heads, b.shard.head_dim);
}

void cross_backward(KernelList& list, const Block& b, std::int64_t tokens, std::int64_t keys) {
  const LayerSetting& s = b.setting;
  const Transformer& t = b.shape;
  const CrossLinears linears(b);
  if (keys > 0 && (s.trained || s.adapters || s.image_gradient)) {
    if (t.qk_norm_per_head)
      norm_backward(list, s, t.norm, keys * b.shard.kv_heads, b.shard.head_dim);
    if (t.qkv_bias) bias_backward(list, s, keys * b.shard.key_value());
    if (s.image_gradient) {
      column_backward(list, of_images(s), linears.key_value, keys);
      list.elementwise("image token gradient", keys * t.hidden_size, kBf16 + kBf16 + kBf16);
    } else {
      if (s.trained)
        list.gemm(
            linears.key_value.weight_gradient_name,
            {linears.key_value.inputs, linears.key_value.outputs, keys, GemmPass::weight_gradient});
      adapter_backward(list, linears.key_value, keys);
    }
  }
  if (t.qk_norm_per_head) norm_backward(list, s, t.norm, tokens * b.shard.heads, b.shard.head_dim);
  if (t.qkv_bias) bias_backward(list, s, tokens * b.shard.q());
  column_backward(list, s, linears.query, tokens);
}

}  // namespace mllmsim::costs
