// A transformer block on one GPU of a tp group, in Megatron's order:
//
//   norm, [all-gather], qkv, [qk-norm], [rotary], ATTENTION, output,
//         all-reduce | reduce-scatter, residual,
//   norm, [all-gather], mlp up, activation, mlp down,
//         all-reduce | reduce-scatter, residual
//
// Latent attention (latent_attention.cpp) has its own way to q, k and v, experts
// (expert_kernels.cpp) stand in place of mlp up to mlp down, a recurrence (recurrent_kernels.cpp)
// in place of qkv to ATTENTION. Blocks of hybrid models have only one of both halves. Gemma's
// norms at the ends of branches come before each residual. Cross-attention (cross_attention.cpp)
// makes keys and values of image tokens. Where attention and MLP are parallel, both start from
// the block's input, and what they make is summed over ranks and added to the stream once.
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
  std::int64_t value_dim = 0;  // of a head's values; head_dim but with latent attention
  bool whole_attention = false;
  bool gate = false;        // as wide as the queries, made with them
  Recurrence recurrence{};  // in attention's place: its heads on one rank

  BlockShard(const Transformer& shape, std::int64_t tp);
  std::int64_t q() const { return heads * head_dim; }
  std::int64_t kv() const { return kv_heads * head_dim; }
  std::int64_t key_value() const { return kv_heads * (head_dim + value_dim); }
  std::int64_t qkv() const { return (gate ? 2 : 1) * q() + key_value(); }
  std::int64_t context() const { return heads * value_dim; }
  // Of a kernel with the same FLOPs and bytes whose values are as wide as its keys.
  std::int64_t even_head_dim() const { return (head_dim + value_dim) / 2; }
  bool wide_keys() const { return head_dim > value_dim; }
};

struct Block {
  const Transformer& shape;
  LayerSetting setting;
  BlockShard shard;

  Block(const Transformer& t, const LayerSetting& s) : shape(t), setting(s), shard(t, s.tp()) {}

  // The matrix that makes all of queries, keys, values and gates.
  Linear input() const;

  // Image tokens that it makes keys of.
  std::int64_t keys(const TokenBatch& batch) const {
    return shape.cross_attention ? batch.cross_keys() : 0;
  }
};

inline constexpr std::string_view kMlpDown = "mlp down";

struct BlockParts {
  std::vector<TimedKernel> before_attention, after_attention;
  // Of the kernels after attention and of those before it: backward runs the block in reverse.
  std::vector<TimedKernel> backward_after, backward_before;
  std::vector<TimedKernel> rerun;  // by selective recompute, attention aside
  std::size_t after_again = 0;     // kernels after attention that full recompute runs again
};
BlockParts block_parts(const Block& block, std::int64_t tokens, std::int64_t keys = 0);

// Of a block without experts, from its normalised input to the sum over tp ranks.
void mlp_forward(KernelList& list, const Block& block, std::int64_t tokens);

// From the block's normalised input to q, k and v, before norms and positions (qkv_kernels.cpp).
void qkv_forward(KernelList& list, const Block& block, std::int64_t tokens);
void qkv_backward(KernelList& list, const Block& block, std::int64_t tokens);

// From the block's normalised input to q, k and v; the second half of that starts with latents
// before their norms.
void latent_forward(KernelList& list, const Block& block, std::int64_t tokens);
std::int64_t latent_weights(const Block& block);  // of its matrices on one rank
void latent_up_forward(KernelList& list, const Block& block, std::int64_t tokens);
void latent_backward(KernelList& list, const Block& block, std::int64_t tokens);

// From the block's normalised input to q, and from image tokens to k and v.
void cross_forward(KernelList& list, const Block& block, std::int64_t tokens, std::int64_t keys);
void cross_backward(KernelList& list, const Block& block, std::int64_t tokens, std::int64_t keys);

// A recurrence: from the block's normalised input to what its chunks are made of, the chunks, and
// the norm behind them.
void recurrent_forward(KernelList& list, const Block& block, std::int64_t tokens);
void recurrent_backward(KernelList& list, const Block& block, std::int64_t tokens);
void recurrence_forward(KernelList& list, const Block& block, const TokenBatch& batch);
void recurrence_backward(KernelList& list, const Block& block, const TokenBatch& batch);
void gated_norm_forward(KernelList& list, const Block& block, std::int64_t tokens);
void gated_norm_backward(KernelList& list, const Block& block, std::int64_t tokens);
ChunkedScan chunked_scan(const Recurrence& recurrence, const TokenBatch& batch, bool backward);

// What one rank has to do with a block's experts (expert_kernels.cpp).
struct ExpertShard {
  std::int64_t tokens = 0;   // that it routes
  std::int64_t sent = 0;     // rows of those for experts: num_experts_per_tok for each token
  std::int64_t rows = 0;     // that its experts see
  std::int64_t experts = 0;  // that it has
  std::int64_t width = 0;    // its part of each
  std::int64_t of_expert() const { return ceil_div(rows, experts); }

  ExpertShard(const Block& block, std::int64_t tokens);
};
// From a block's normalised input to the sum of its experts, shared ones included.
void experts_forward(KernelList& list, const Block& block, std::int64_t tokens);
void experts_backward(KernelList& list, const Block& block, std::int64_t tokens);
// The same where experts are on other ranks than the rest of the layer (expert_parallel.cpp).
void parallel_experts_forward(KernelList& list, const Block& block, std::int64_t tokens);
void parallel_experts_backward(KernelList& list, const Block& block, std::int64_t tokens);

// Parts that both have.
struct ExpertLinears {
  Linear router, shared_up, shared_down;
  explicit ExpertLinears(const Block& block);
};
// What follows is replayed as a graph, if so. It reads its inputs, and backwards the gradients of
// its outputs, where they were when it was recorded: so many tensors as large as the block's input
// are copied there (Transformer Engine's make_graphed_callables).
void enter_graph(KernelList& list, const Block& block, std::int64_t tokens, int tensors,
                 bool graph);

void router_forward(KernelList& list, const Block& block, std::int64_t rows);
void router_backward(KernelList& list, const Block& block, std::int64_t rows);
// What a dispatcher finds out from the choices of `rows` tokens.
void dispatch_bookkeeping(KernelList& list, const Block& b, std::int64_t rows, bool backward);
// Whether the CPU waits for the router before it launches experts: how many rows each gets is known
// beforehand only at a capacity, and on the GPU alone where whole layers are graphs.
bool waits_for_counts(const Block& block);
void expert_mlps_forward(KernelList& list, const Block& block, const ExpertShard& shard);
void expert_mlps_backward(KernelList& list, const Block& block, const ExpertShard& shard);
// Parts of experts_forward that can run again by themselves.
void expert_activation_forward(KernelList& list, const Block& block, std::int64_t tokens);
void shared_experts_forward(KernelList& list, const Block& block, std::int64_t tokens);

// The sequences that attend within themselves where attention stays within pieces of `chunk`; 0:
// the batch's own.
std::vector<SequenceGroup> chunked(const TokenBatch& batch, std::int64_t chunk);

// Whether one kernel scales, masks and normalises `rows` rows of scores; otherwise PyTorch's
// operators do, in fp32.
bool fused_softmax(const Block& block, std::int64_t rows, std::int64_t length);
std::vector<TimedKernel> attention_forward(const Block& block, const TokenBatch& batch);
std::vector<TimedKernel> attention_backward(const Block& block, const TokenBatch& batch);

}  // namespace mllmsim::costs
