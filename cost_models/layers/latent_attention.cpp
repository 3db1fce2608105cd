// Multi-head latent attention on one rank, as Megatron runs it: the matrices that make the latents
// are repeated on every rank and see its own rows; those that make heads of them are split by
// columns. In training keys and values are made whole, so attention itself is ordinary.
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

struct LatentLinears {
  Linear query_down, query_up, kv_down, kv_up;

  explicit LatentLinears(const Block& b) {
    const LatentAttention& l = b.shape.latent;
    const std::int64_t h = b.shape.hidden_size;
    query_down = {"query latent", "query latent input gradient", "query latent weight gradient", h,
                  l.q_lora_rank};
    query_up = {"query", "query input gradient", "query weight gradient",
                l.q_lora_rank > 0 ? l.q_lora_rank : h, b.shard.q()};
    kv_down = {"key-value latent", "key-value latent input gradient",
               "key-value latent weight gradient", h, l.kv_lora_rank + l.qk_rope_head_dim};
    kv_up = {"key and value", "key and value input gradient", "key and value weight gradient",
             l.kv_lora_rank, b.shard.heads * (l.qk_nope_head_dim + l.v_head_dim)};
  }
};

// Of every head's query, and of the one key that heads share.
Rotary turned(const Block& b, std::int64_t tokens) {
  const std::int64_t d = b.shape.latent.qk_rope_head_dim;
  return {tokens, b.shard.heads * d, d, d, true};
}

}  // namespace

std::int64_t latent_weights(const Block& b) {
  const LatentLinears l(b);
  std::int64_t n = 0;
  for (const Linear* linear : {&l.query_down, &l.query_up, &l.kv_down, &l.kv_up})
    n += linear->inputs * linear->outputs;
  return n;
}

void latent_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const LatentAttention& l = b.shape.latent;
  const LatentLinears linears(b);
  const std::int64_t rows = s.rows(tokens);
  if (l.q_lora_rank > 0) whole_forward(list, s, linears.query_down, rows);
  whole_forward(list, s, linears.kv_down, rows);
  if (s.sequence_parallel)
    list.collective(CollectiveOp::all_gather, s.activation(tokens * l.qk_rope_head_dim));
  latent_up_forward(list, b, tokens);
}

void latent_up_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const LatentAttention& l = b.shape.latent;
  const LatentLinears linears(b);
  const std::int64_t rows = s.rows(tokens);
  if (l.q_lora_rank > 0) norm_forward(list, s, b.shape.norm, rows, l.q_lora_rank);
  column_forward(list, s, linears.query_up, tokens);
  norm_forward(list, s, b.shape.norm, rows, l.kv_lora_rank);
  column_forward(list, s, linears.kv_up, tokens);
  rotary(list, s, turned(b, tokens), false);
  list.elementwise("key parts", tokens * b.shard.heads * b.shard.head_dim, kBf16 + kBf16);
}

void latent_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const LatentAttention& l = b.shape.latent;
  const LatentLinears linears(b);
  const std::int64_t rows = s.rows(tokens), h = b.shape.hidden_size;
  list.elementwise("key parts backward", tokens * b.shard.heads * b.shard.head_dim, kBf16 + kBf16);
  rotary(list, s, turned(b, tokens), true);
  column_backward(list, s, linears.kv_up, tokens);
  if (s.sequence_parallel)
    list.collective(CollectiveOp::reduce_scatter, s.activation(tokens * l.qk_rope_head_dim));
  norm_backward(list, s, b.shape.norm, rows, l.kv_lora_rank);
  whole_backward(list, s, linears.kv_down, rows);
  column_backward(list, s, linears.query_up, tokens);
  if (l.q_lora_rank > 0) {
    norm_backward(list, s, b.shape.norm, rows, l.q_lora_rank);
    whole_backward(list, s, linears.query_down, rows);
  }
  list.elementwise("latent gradient sum", rows * h, kBf16 + kBf16 + kBf16);
}

}  // namespace mllmsim::costs
