// A transformer block on one GPU of a tp group, in Megatron's order:
//
//   norm, [all-gather], qkv, [qk-norm], [rotary], ATTENTION, output,
//         all-reduce | reduce-scatter, residual,
//   norm, [all-gather], mlp up, activation, mlp down,
//         all-reduce | reduce-scatter, residual
//
// Everything but ATTENTION depends only on the number of tokens, so the block comes in parts around
// it: an epoch has hundreds of thousands of different packs, but few different token counts.
//
// ATTENTION is one flash kernel over all sequences, or else Megatron's separate kernels: Q K^T,
// scale-mask-softmax, dropout, P V and a copy of the result, for each group of equal lengths.
#pragma once

#include "cost_models/layers/layer_kernels.hpp"

namespace mllmsim::costs {

// What one rank holds of a block. Heads that do not divide by tp are padded, or all of them are on
// every rank; where there are fewer key-value heads than ranks, each rank holds a copy of one.
struct BlockShard {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, mlp = 0;
  bool whole_attention = false;

  BlockShard(const Transformer& shape, std::int64_t tp);
  std::int64_t q() const { return heads * head_dim; }
  std::int64_t kv() const { return kv_heads * head_dim; }
  std::int64_t qkv() const { return q() + 2 * kv(); }
};

struct Block {
  const Transformer& shape;
  LayerSetting setting;
  BlockShard shard;

  Block(const Transformer& t, const LayerSetting& s) : shape(t), setting(s), shard(t, s.tp()) {}
};

struct BlockParts {
  std::vector<TimedKernel> before_attention, after_attention;
  // Of the kernels after attention and of those before it: backward runs the block in reverse.
  std::vector<TimedKernel> backward_after, backward_before;
};
BlockParts block_parts(const Block& block, std::int64_t tokens);

std::vector<TimedKernel> attention_forward(const Block& block, const TokenBatch& batch);
std::vector<TimedKernel> attention_backward(const Block& block, const TokenBatch& batch);

}  // namespace mllmsim::costs
