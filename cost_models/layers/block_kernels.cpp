#include "cost_models/layers/block_kernels.hpp"

#include "cost_models/layers/pointwise_kernels.hpp"
#include "cost_models/layers/recompute.hpp"

namespace mllmsim::costs {
namespace {

// `up` is gate and up together if they are one GEMM.
struct BlockLinears {
  Linear qkv, output, up, down;

  explicit BlockLinears(const Block& b)
      : qkv(b.input()),
        output{"attention output", "attention output input gradient",
               "attention output weight gradient", b.shard.context(), b.shape.hidden_size},
        up{"mlp up", "mlp up input gradient", "mlp up weight gradient", b.shape.hidden_size,
           (b.shape.gated_mlp && b.setting.software.joint_gate_up ? 2 : 1) * b.shard.mlp},
        down{kMlpDown, "mlp down input gradient", "mlp down weight gradient", b.shard.mlp,
             b.shape.hidden_size} {
    const Adapters& a = b.shape.adapters;
    const auto adapt = [&a](Linear& linear, bool target) {
      linear.adapter_rank = target ? a.lora_rank : 0;
      linear.dora = a.use_dora;
    };
    adapt(output, a.output);
    adapt(up, a.up);
    adapt(down, a.down);
  }
};

// Values of the matrices that are quantised for a pass.
std::int64_t quantised_weights(const Block& b) {
  const BlockLinears linears(b);
  const auto of = [](std::initializer_list<const Linear*> list) {
    std::int64_t n = 0;
    for (const Linear* l : list) n += l->inputs * l->outputs;
    return n;
  };
  std::int64_t n = !b.shape.has_mixer ? 0
                   : b.shape.latent   ? latent_weights(b) + of({&linears.output})
                                      : of({&linears.qkv, &linears.output});
  if (b.shape.experts.num_experts == 0) return n + of({&linears.up, &linears.down});
  const ExpertShard x(b, 1);
  const ExpertLinears experts(b);
  n += of({&experts.shared_up, &experts.shared_down});
  return n + (b.shape.gated_mlp ? 3 : 2) * b.shape.hidden_size * x.width * x.experts;
}

// The norm at the start of a branch.
void block_norm_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  if (s.software.average_norm_weights)
    list.collective(CollectiveOp::all_reduce, s.activation(b.shape.hidden_size));
  norm_forward(list, s, b.shape.norm, s.rows(tokens), b.shape.hidden_size);
}

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

// Partial results of attention and MLP added, then summed over ranks: GPT-NeoX's gpt_j_residual.
void sum_branches(KernelList& list, const Block& b, const Linear& down, std::int64_t tokens) {
  whole_forward(list, b.setting, down, tokens);
  const std::int64_t values = tokens * b.shape.hidden_size;
  list.elementwise("sum of branches", values, kBf16 + kBf16 + kBf16);
  list.collective(CollectiveOp::all_reduce, b.setting.activation(values));
}

bool gate_apart(const Block& b) { return b.shape.gated_mlp && !b.setting.software.joint_gate_up; }

// What attention gave, times the sigmoid of the gate.
void attention_gate(KernelList& list, const Block& b, std::int64_t tokens, bool backward) {
  const std::int64_t values = tokens * b.shard.context();
  if (backward)
    list.elementwise("attention gate backward", values, 5 * kBf16);
  else
    list.elementwise("attention gate", values, 3 * kBf16);
}

bool router_graph(const Block& b) {
  return b.setting.software.cuda_graph_router && b.shape.has_mlp && b.shape.experts.num_experts > 0;
}

bool attention_graph(const Block& b) {
  return b.setting.software.cuda_graph_attention && b.shape.has_mixer;
}

std::vector<TimedKernel> before_attention(const Block& b, std::int64_t tokens, std::int64_t keys) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  KernelList list(s);
  enter_graph(list, b, tokens, 1, attention_graph(b));
  if (s.quantises_weights) list.quantise("quantise weights", quantised_weights(b), 1);
  if (t.joins_next_token) join_forward(list, b, tokens);
  if (!t.has_mixer) return list.take();
  block_norm_forward(list, b, tokens);
  if (t.recurrence) {
    recurrent_forward(list, b, tokens);
    return list.take();
  }
  if (t.latent) {
    latent_forward(list, b, tokens);
    return list.take();
  }
  if (t.cross_attention) {
    cross_forward(list, b, tokens, keys);
    return list.take();
  }
  qkv_forward(list, b, tokens);
  if (t.qkv_bias) bias_forward(list, tokens * b.shard.qkv());
  if (t.qk_norm) {
    const QkNorm qk{b, tokens};
    qk.meet(list);
    norm_forward(list, s, t.norm, tokens, qk.q());
    norm_forward(list, s, t.norm, tokens, qk.kv());
  }
  if (t.qk_norm_per_head) head_norms(list, b, tokens, false);
  if (t.rotary) rotary(list, s, {tokens, b.shard.q(), b.shard.kv(), b.shard.head_dim}, false);
  return list.take();
}

std::vector<TimedKernel> after_attention(const Block& b, std::int64_t tokens) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const BlockLinears linears(b);
  const std::int64_t rows = s.rows(tokens);
  KernelList list(s);
  list.in_graph(s.software.cuda_graph_attention);
  if (t.recurrence) gated_norm_forward(list, b, tokens);
  if (t.attention_gate && t.has_mixer && !t.recurrence) attention_gate(list, b, tokens, false);
  if (!t.has_mixer) {
  } else if (b.shard.whole_attention || t.parallel_residual) {
    // A rank goes on with its rows of a complete result, or has the sum over ranks made later.
    whole_forward(list, s, linears.output, tokens);
  } else {
    row_forward(list, s, linears.output, tokens);
  }
  if (t.post_norms && t.has_mixer) norm_forward(list, s, t.norm, rows, t.hidden_size);
  if (!t.parallel_residual && t.has_mixer) residual_forward(list, s, t, rows);
  if (!t.has_mlp) return list.take();
  if (attention_graph(b))
    list.in_graph(router_graph(b));  // one graph
  else
    enter_graph(list, b, tokens, 1, router_graph(b));
  if (!t.shared_norm) block_norm_forward(list, b, tokens);
  if (t.experts.num_experts > 0)
    experts_forward(list, b, tokens);
  else
    mlp_forward(list, b, tokens);
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
  if (s.quantises_weights) list.quantise("quantise weights", quantised_weights(b), 1);
  if (t.has_mlp) residual_backward(list, s, t, rows);
  if (t.post_norms && t.has_mlp) norm_backward(list, s, t.norm, rows, t.hidden_size);
  if (!t.has_mlp) {
  } else if (t.experts.num_experts > 0) {
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
  if (t.has_mlp && !t.shared_norm) norm_backward(list, s, t.norm, rows, t.hidden_size);
  if (router_graph(b))
    list.in_graph(attention_graph(b));
  else
    enter_graph(list, b, tokens, 1, attention_graph(b));
  if (t.has_mlp && (t.has_mixer || s.input_gradient)) fork_backward(list, t, rows);
  if (!t.has_mixer) return list.take();
  if (!t.parallel_residual) residual_backward(list, s, t, rows);
  if (t.post_norms) norm_backward(list, s, t.norm, rows, t.hidden_size);
  row_backward(list, s, linears.output, tokens);
  if (t.recurrence) gated_norm_backward(list, b, tokens);
  if (t.attention_gate && !t.recurrence) attention_gate(list, b, tokens, true);
  return list.take();
}

std::vector<TimedKernel> backward_before(const Block& b, std::int64_t tokens, std::int64_t keys) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const std::int64_t rows = s.rows(tokens);
  KernelList list(s);
  list.in_graph(s.software.cuda_graph_attention);
  const auto norm_and_fork = [&] {
    norm_backward(list, s, t.norm, rows, t.hidden_size);
    if (s.input_gradient) fork_backward(list, t, rows);
    if (t.joins_next_token) join_backward(list, b, tokens);
    return list.take();
  };
  if (!t.has_mixer) {
    if (t.joins_next_token) join_backward(list, b, tokens);
    return list.take();
  }
  if (t.recurrence) {
    recurrent_backward(list, b, tokens);
    return norm_and_fork();
  }
  if (t.latent) {
    latent_backward(list, b, tokens);
    return norm_and_fork();
  }
  if (t.cross_attention) {
    cross_backward(list, b, tokens, keys);
    return norm_and_fork();
  }
  if (t.rotary) rotary(list, s, {tokens, b.shard.q(), b.shard.kv(), b.shard.head_dim}, true);
  if (t.qk_norm) {
    const QkNorm qk{b, tokens};
    qk.meet(list);
    norm_backward(list, s, t.norm, tokens, qk.q());
    norm_backward(list, s, t.norm, tokens, qk.kv());
  }
  if (t.qk_norm_per_head) head_norms(list, b, tokens, true);
  if (t.qkv_bias) bias_backward(list, s, tokens * b.shard.qkv());
  qkv_backward(list, b, tokens);
  return norm_and_fork();
}

}  // namespace

void mlp_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const BlockLinears linears(b);
  if (gate_apart(b)) column_forward(list, s, linears.up, tokens);
  column_forward(list, s, linears.up, tokens);
  activation_forward(list, s, b.shape.gated_mlp, b.shape.linear_bias, tokens * b.shard.mlp);
  if (b.shape.parallel_residual)
    sum_branches(list, b, linears.down, tokens);
  else
    row_forward(list, s, linears.down, tokens);
}

BlockShard::BlockShard(const Transformer& t, std::int64_t tp)
    : heads(t.num_attention_heads),
      kv_heads(t.num_key_value_heads),
      head_dim(t.head_dim),
      mlp(ceil_div(t.intermediate_size, tp)),
      value_dim(t.head_dim),
      whole_attention(t.replicates_attention(tp)),
      gate(t.attention_gate && !t.recurrence),
      recurrence(t.recurrence) {
  if (recurrence) {
    whole_attention = false;
    recurrence.num_value_heads = ceil_div(recurrence.num_value_heads, tp);
    recurrence.num_key_heads = ceil_div(recurrence.num_key_heads, tp);
    heads = kv_heads = recurrence.num_value_heads;
    head_dim = recurrence.key_head_dim;
    value_dim = recurrence.value_head_dim;
    return;
  }
  if (t.latent) {
    head_dim = t.latent.qk_nope_head_dim + t.latent.qk_rope_head_dim;
    value_dim = t.latent.v_head_dim;
    kv_heads = heads;
  }
  if (whole_attention) return;
  heads = ceil_div(heads, tp);
  kv_heads = ceil_div(kv_heads, tp);
}

namespace {

Time computing(std::initializer_list<const std::vector<TimedKernel>*> lists) {
  Time sum{};
  for (const auto* list : lists)
    for (const TimedKernel& k : *list)
      if (!k.communication) sum += k.time;
  return sum;
}

// Exchanges of tokens in one pass, beside the other of another micro-batch; attention not counted.
void overlap_exchanges(const LayerSetting& s, std::vector<TimedKernel>& kernels, Time beside) {
  Time all{};
  for (const TimedKernel& k : kernels) all += k.beside_other_pass;
  if (all == Time{}) return;
  double share = 0;
  if (s.software.overlap_moe_expert_parallel_comm)
    share = hidden_beside(slowdown_beside_exchange(s), to_seconds(all), to_seconds(beside)) /
            to_seconds(all);
  for (TimedKernel& k : kernels) k.beside_other_pass = scaled(k.beside_other_pass, share);
}

}  // namespace

BlockParts block_parts(const Block& block, std::int64_t tokens, std::int64_t keys) {
  BlockParts parts{
      before_attention(block, tokens, keys), after_attention(block, tokens), {}, {}, {}, 0};
  if (block.setting.has_backward()) {
    parts.rerun = rerun_kernels(block, tokens);
    parts.after_again = run_again(block, parts.after_attention);
    parts.backward_after = backward_after(block, tokens);
    parts.backward_before = backward_before(block, tokens, keys);
  }
  const Time forward = computing({&parts.before_attention, &parts.after_attention});
  overlap_exchanges(block.setting, parts.after_attention,
                    computing({&parts.backward_after, &parts.backward_before}));
  overlap_exchanges(block.setting, parts.backward_after, forward);
  overlap_exchanges(block.setting, parts.rerun, forward);
  return parts;
}

}  // namespace mllmsim::costs
