#include "cost_models/layers/block_kernels.hpp"

#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

// `up` is gate and up together if they are one GEMM.
struct BlockLinears {
  Linear qkv, output, up, down;

  explicit BlockLinears(const Block& b)
      : qkv{"qkv", "qkv input gradient", "qkv weight gradient", b.shape.hidden_size, b.shard.qkv()},
        output{"attention output", "attention output input gradient",
               "attention output weight gradient", b.shard.context(), b.shape.hidden_size},
        up{"mlp up", "mlp up input gradient", "mlp up weight gradient", b.shape.hidden_size,
           (b.shape.gated_mlp && b.setting.software.joint_gate_up ? 2 : 1) * b.shard.mlp},
        down{"mlp down", "mlp down input gradient", "mlp down weight gradient", b.shard.mlp,
             b.shape.hidden_size} {
    const Adapters& a = b.shape.adapters;
    const auto adapt = [&a](Linear& linear, bool target) {
      linear.adapter_rank = target ? a.lora_rank : 0;
      linear.dora = a.use_dora;
    };
    adapt(qkv, a.qkv);
    adapt(output, a.output);
    adapt(up, a.up);
    adapt(down, a.down);
  }

  std::int64_t weights() const {
    std::int64_t n = 0;
    for (const Linear* l : {&qkv, &output, &up, &down}) n += l->inputs * l->outputs;
    return n;
  }
};

// Multi-token prediction: stream and next token's embedding, normalised, through one matrix.
void join_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const std::int64_t rows = b.setting.rows(tokens), h = b.shape.hidden_size;
  for (int i = 0; i < 2; ++i) norm_forward(list, b.setting, b.shape.norm, rows, h);
  list.elementwise("join next token", rows * 2 * h, kBf16 + kBf16);
  whole_forward(list, b.setting, {"join", "", "", 2 * h, h}, rows);
}
void join_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const std::int64_t rows = b.setting.rows(tokens), h = b.shape.hidden_size;
  whole_backward(list, b.setting, {"join", "join input gradient", "join weight gradient", 2 * h, h},
                 rows);
  list.elementwise("join next token backward", rows * 2 * h, kBf16 + kBf16);
  for (int i = 0; i < 2; ++i) norm_backward(list, b.setting, b.shape.norm, rows, h);
}

// One norm of head_dim for every head: ranks have nothing to tell each other.
void head_norms(KernelList& list, const Block& b, std::int64_t tokens, bool backward) {
  for (const std::int64_t heads : {b.shard.heads, b.shard.kv_heads}) {
    if (backward)
      norm_backward(list, b.setting, b.shape.norm, tokens * heads, b.shard.head_dim);
    else
      norm_forward(list, b.setting, b.shape.norm, tokens * heads, b.shard.head_dim);
  }
}

// InternViT normalises q and k over all heads. Ranks that hold only some add up their sums of
// squares, an fp32 value per token for each of q and k, or gather q and k and normalise them whole;
// the backward does the same with gradients.
struct QkNorm {
  const Block& b;
  std::int64_t tokens;

  bool gathers() const {
    return b.setting.software.gather_qk_norm && b.setting.tp() > 1 && !b.shard.whole_attention;
  }
  std::int64_t q() const {
    return gathers() ? b.shape.num_attention_heads * b.shape.head_dim : b.shard.q();
  }
  std::int64_t kv() const {
    return gathers() ? b.shape.num_key_value_heads * b.shape.head_dim : b.shard.kv();
  }
  void meet(KernelList& list) const {
    if (!gathers()) {
      if (!b.shard.whole_attention)
        list.collective(CollectiveOp::all_reduce, Bytes{tokens * 2 * kFp32});
      return;
    }
    for (const std::int64_t width : {q(), kv()}) {
      list.collective(CollectiveOp::all_gather, b.setting.activation(tokens * width));
      list.elementwise("qk gather copy", tokens * width, kBf16 + kBf16);
    }
  }
};

bool gate_apart(const Block& b) { return b.shape.gated_mlp && !b.setting.software.joint_gate_up; }

std::vector<TimedKernel> before_attention(const Block& b, std::int64_t tokens) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  KernelList list(s);
  if (s.quantises_weights) list.quantise("quantise weights", BlockLinears(b).weights(), 1);
  if (t.joins_next_token) join_forward(list, b, tokens);
  norm_forward(list, s, t.norm, s.rows(tokens), t.hidden_size);
  if (t.latent) {
    latent_forward(list, b, tokens);
    return list.take();
  }
  column_forward(list, s, BlockLinears(b).qkv, tokens);
  if (t.qkv_bias) bias_forward(list, tokens * b.shard.qkv());
  if (t.qk_norm) {
    const QkNorm qk{b, tokens};
    qk.meet(list);
    norm_forward(list, s, t.norm, tokens, qk.q());
    norm_forward(list, s, t.norm, tokens, qk.kv());
  }
  if (t.qk_norm_per_head) head_norms(list, b, tokens, false);
  if (t.rotary) rotary(list, s, tokens * (b.shard.q() + b.shard.kv()));
  return list.take();
}

std::vector<TimedKernel> after_attention(const Block& b, std::int64_t tokens) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const BlockLinears linears(b);
  const std::int64_t rows = s.rows(tokens);
  KernelList list(s);
  if (b.shard.whole_attention)  // a rank goes on with its rows of a complete result
    whole_forward(list, s, linears.output, tokens);
  else
    row_forward(list, s, linears.output, tokens);
  if (t.post_norms) norm_forward(list, s, t.norm, rows, t.hidden_size);
  residual_forward(list, s, t, rows);
  norm_forward(list, s, t.norm, rows, t.hidden_size);
  if (t.experts.num_experts > 0) {
    experts_forward(list, b, tokens);
  } else {
    if (gate_apart(b)) column_forward(list, s, linears.up, tokens);
    column_forward(list, s, linears.up, tokens);
    activation_forward(list, s, t.gated_mlp, t.linear_bias, tokens * b.shard.mlp);
    row_forward(list, s, linears.down, tokens);
  }
  if (t.post_norms) norm_forward(list, s, t.norm, rows, t.hidden_size);
  residual_forward(list, s, t, rows);
  return list.take();
}

std::vector<TimedKernel> backward_after(const Block& b, std::int64_t tokens) {
  const Transformer& t = b.shape;
  const BlockLinears linears(b);
  const LayerSetting& s = b.setting;
  const std::int64_t rows = s.rows(tokens);
  KernelList list(s);
  if (s.quantises_weights) list.quantise("quantise weights", linears.weights(), 1);
  residual_backward(list, s, t, rows);
  if (t.post_norms) norm_backward(list, s, t.norm, rows, t.hidden_size);
  if (t.experts.num_experts > 0) {
    experts_backward(list, b, tokens);
  } else {
    row_backward(list, s, linears.down, tokens);
    activation_backward(list, s, t.gated_mlp, t.linear_bias, tokens * b.shard.mlp);
    column_backward(list, s, linears.up, tokens);
    if (gate_apart(b)) {
      column_backward(list, s, linears.up, tokens);
      list.elementwise("sum of input gradients", rows * t.hidden_size, kBf16 + kBf16 + kBf16);
    }
  }
  norm_backward(list, s, t.norm, rows, t.hidden_size);
  fork_backward(list, t, rows);
  residual_backward(list, s, t, rows);
  if (t.post_norms) norm_backward(list, s, t.norm, rows, t.hidden_size);
  row_backward(list, s, linears.output, tokens);
  return list.take();
}

std::vector<TimedKernel> backward_before(const Block& b, std::int64_t tokens) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const std::int64_t rows = s.rows(tokens);
  KernelList list(s);
  const auto norm_and_fork = [&] {
    norm_backward(list, s, t.norm, rows, t.hidden_size);
    if (s.input_gradient) fork_backward(list, t, rows);
    if (t.joins_next_token) join_backward(list, b, tokens);
    return list.take();
  };
  if (t.latent) {
    latent_backward(list, b, tokens);
    return norm_and_fork();
  }
  if (t.rotary) rotary(list, s, tokens * (b.shard.q() + b.shard.kv()));
  if (t.qk_norm) {
    const QkNorm qk{b, tokens};
    qk.meet(list);
    norm_backward(list, s, t.norm, tokens, qk.q());
    norm_backward(list, s, t.norm, tokens, qk.kv());
  }
  if (t.qk_norm_per_head) head_norms(list, b, tokens, true);
  list.elementwise("qkv gradient concat", tokens * b.shard.qkv(), kBf16 + kBf16);
  if (t.qkv_bias) bias_backward(list, s, tokens * b.shard.qkv());
  if (b.shard.whole_attention)
    gathered_backward(list, s, BlockLinears(b).qkv, tokens);
  else
    column_backward(list, s, BlockLinears(b).qkv, tokens);
  return norm_and_fork();
}

}  // namespace

BlockShard::BlockShard(const Transformer& t, std::int64_t tp)
    : heads(t.num_attention_heads),
      kv_heads(t.num_key_value_heads),
      head_dim(t.head_dim),
      mlp(ceil_div(t.intermediate_size, tp)),
      value_dim(t.head_dim),
      whole_attention(t.replicates_attention(tp)) {
  if (t.latent) {
    head_dim = t.latent.qk_nope_head_dim + t.latent.qk_rope_head_dim;
    value_dim = t.latent.v_head_dim;
    kv_heads = heads;
  }
  if (whole_attention) return;
  heads = ceil_div(heads, tp);
  kv_heads = ceil_div(kv_heads, tp);
}

BlockParts block_parts(const Block& block, std::int64_t tokens) {
  BlockParts parts{before_attention(block, tokens), after_attention(block, tokens), {}, {}};
  if (block.setting.has_backward()) {
    parts.backward_after = backward_after(block, tokens);
    parts.backward_before = backward_before(block, tokens);
  }
  return parts;
}

}  // namespace mllmsim::costs
