#include "cost_models/layers/context_parallel.hpp"

namespace mllmsim::costs {
namespace {

Attention attention(const Block& b, const TokenBatch& batch, bool backward) {
  return {batch.groups,
          b.shard.heads,
          b.shard.kv_heads,
          b.shard.even_head_dim(),
          b.shape.causal,
          backward,
          b.setting.software.flash_attention_generation,
          b.shape.sliding_window,
          false,
          b.shard.wide_keys()};
}

struct Ring {
  const Block& b;
  std::int64_t tokens;  // on this rank

  explicit Ring(const Block& block, const TokenBatch& batch)
      : b(block), tokens(block.setting.local_tokens(batch)) {}

  // Keys and values of this rank; with their gradients if backwards.
  Bytes message(bool backward) const {
    return b.setting.activation((backward ? 2 : 1) * tokens * b.shard.key_value());
  }
  Cost travel(bool backward) const {
    const GroupShape& group = b.setting.cp_group;
    return b.setting.costs.point_to_point(
        {message(backward), group.nodes == 1, group.nodes == 1 ? 1 : b.setting.cp_nic_sharers});
  }
  Attention step(const TokenBatch& batch, bool backward) const {
    Attention a = attention(b, batch, backward);
    for (SequenceGroup& g : a.sequences) g.length = b.setting.local_length(g.length);
    return a;
  }
};

// A rank that has whole sequences of 1/cp of the heads.
Attention of_heads(const Block& b, const TokenBatch& batch, bool backward) {
  Attention a = attention(b, batch, backward);
  a.heads = ceil_div(a.heads, b.setting.cp());
  a.kv_heads = ceil_div(a.kv_heads, b.setting.cp());
  return a;
}

Bytes gathered(const Block& b, std::int64_t tokens) {
  return b.setting.activation(tokens * b.setting.cp() * b.shard.key_value());
}

}  // namespace

void context_parallel_forward(KernelList& list, const Block& b, const TokenBatch& batch) {
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  switch (s.cp_comm_type) {
    case CpCommType::p2p: {
      const Ring ring(b, batch);
      list.ring("attention", ring.step(batch, false), s.cp(), ring.travel(false));
      // Each step's output into the sum of those before.
      for (std::int64_t i = 0; i < s.cp(); ++i)
        list.elementwise("attention output sum", tokens * b.shard.context(), kBf16 + kBf16 + kBf16);
      return;
    }
    case CpCommType::all_gather:
      list.cp_collective(s, CollectiveOp::all_gather, gathered(b, tokens));
      return list.attention_share("attention", attention(b, batch, false), s.cp());
    case CpCommType::a2a:
      list.cp_collective(s, CollectiveOp::all_to_all, s.activation(tokens * b.shard.qkv()));
      list.attention("attention", of_heads(b, batch, false));
      return list.cp_collective(s, CollectiveOp::all_to_all,
                                s.activation(tokens * b.shard.context()));
  }
}

void context_parallel_backward(KernelList& list, const Block& b, const TokenBatch& batch) {
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  switch (s.cp_comm_type) {
    case CpCommType::p2p: {
      const Ring ring(b, batch);
      list.ring("attention backward", ring.step(batch, true), s.cp(), ring.travel(true));
      for (std::int64_t i = 0; i + 1 < s.cp(); ++i)
        list.elementwise("attention gradient sum", tokens * b.shard.qkv(), kBf16 + kBf16 + kBf16);
      return;
    }
    case CpCommType::all_gather:
      list.cp_collective(s, CollectiveOp::all_gather, gathered(b, tokens));
      list.attention_share("attention backward", attention(b, batch, true), s.cp());
      return list.cp_collective(s, CollectiveOp::reduce_scatter, gathered(b, tokens));
    case CpCommType::a2a:
      list.cp_collective(s, CollectiveOp::all_to_all, s.activation(tokens * b.shard.context()));
      list.attention("attention backward", of_heads(b, batch, true));
      return list.cp_collective(s, CollectiveOp::all_to_all, s.activation(tokens * b.shard.qkv()));
  }
}

Bytes context_parallel_bytes(const Block& b, const TokenBatch& batch, bool backward) {
  const LayerSetting& s = b.setting;
  const std::int64_t cp = s.cp(), tokens = s.local_tokens(batch);
  const auto all_but_own = [&](Bytes whole) { return Bytes{whole.value / cp * (cp - 1)}; };
  switch (s.cp_comm_type) {
    case CpCommType::p2p:
      return Ring(b, batch).message(backward) * (cp - 1);
    case CpCommType::all_gather:
      return all_but_own(gathered(b, tokens)) * (backward ? 2 : 1);
    case CpCommType::a2a:
      return all_but_own(s.activation(tokens * b.shard.qkv())) +
             all_but_own(s.activation(tokens * b.shard.context()));
  }
  return {};
}

}  // namespace mllmsim::costs
