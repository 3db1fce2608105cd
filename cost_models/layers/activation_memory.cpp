#include "cost_models/layers/activation_memory.hpp"

#include <algorithm>

#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/recompute.hpp"

namespace mllmsim::costs {
namespace {

class Saved {
 public:
  explicit Saved(const LayerSetting& s) : s_(s) {}

  void add(std::string_view name, std::int64_t values, Traffic bytes_per_value) {
    tensors_.push_back({name,
                        Bytes{bytes_per_value.of(values, s_.software.precision.activation_bytes)},
                        second_half_});
  }
  // What follows is freed before the backward of what came before starts.
  void begin_second_half() { second_half_ = true; }
  void add_if(bool kept, std::string_view name, std::int64_t values, Traffic bytes_per_value) {
    if (kept) add(name, values, bytes_per_value);
  }

  // What a product reads again for a weight gradient, quantised if the product was.
  void add_operand(std::string_view name, std::int64_t values) {
    if (s_.trained) tensors_.push_back({name, s_.operand(values), second_half_});
  }

  // A fused norm keeps its input. Eager RMSNorm keeps an fp32 copy of it and, for the gradient of
  // its weight, the normalised values in bf16.
  void add_norm(Norm norm, std::string_view name, std::int64_t values) {
    if (s_.software.fused_norms || norm == Norm::layer_norm)
      add(name, values, kBf16);
    else
      add(name, values, kFp32 + (s_.trained ? kBf16 : Traffic{}));
  }

  // The end of a residual branch: layer scale keeps what it scales, dropout its mask.
  void add_branch(const Transformer& t, std::int64_t values) {
    add_if((t.layer_scale || t.gated_branches) && s_.trained, "layer scale input", values, kBf16);
    add_if(s_.software.dropout, "dropout mask", values, kMask);
  }

  std::vector<SavedTensor> take() { return std::move(tensors_); }

 private:
  const LayerSetting& s_;
  bool second_half_ = false;
  std::vector<SavedTensor> tensors_;
};

std::int64_t keys_of(const Block& b, const TokenBatch& batch) {
  return b.shape.cross_attention ? b.keys(batch) : b.setting.local_tokens(batch);
}

void add_attention(Saved& saved, const Block& b, const TokenBatch& batch, const Rerun& rerun) {
  const std::int64_t tokens = b.setting.local_tokens(batch);
  const Software& software = b.setting.software;
  if (!rerun.up_projections) {
    saved.add("query", tokens * b.shard.q(), kBf16);
    // Unfused attention repeats key-value heads for their queries and keeps the copies.
    const std::int64_t kv = software.flash_attention ? b.shard.key_value() : 2 * b.shard.q();
    saved.add("key and value", keys_of(b, batch) * kv, kBf16);
  }
  if (software.flash_attention) {
    const std::int64_t context = tokens * b.shard.context();
    const Adapters& a = b.shape.adapters;
    const bool read_on = b.setting.trained || (a.lora_rank > 0 && a.output);
    saved.add_if(!rerun.attention || read_on, "attention output", context, kBf16);
    const bool transposed = software.memory.transpose_attention_output && b.setting.trained &&
                            batch.groups.size() == 1 && batch.sequences() > 1;
    saved.add_if(transposed && !rerun.attention, "attention output, transposed", context, kBf16);
    // Gathered keys or heads: attention keeps its output as it is cut there, the next matrix as it
    // is cut elsewhere (Transformer Engine's context_parallel.py).
    const bool cut_anew = b.setting.cp() > 1 && b.setting.cp_comm_type != CpCommType::p2p;
    saved.add_if(cut_anew && !rerun.attention, "attention output within its ranks", context, kBf16);
    saved.add_if(!rerun.attention, "attention log-sum-exp", tokens * b.shard.heads, kFp32);
    if (b.setting.quantises())
      saved.add_operand("attention output, quantised", tokens * b.shard.context());
    return;
  }
  saved.add_if(b.setting.trained, "attention output", tokens * b.shard.context(), kBf16);
  if (rerun.attention) return;
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size)) {
    const std::int64_t keys = b.shape.cross_attention ? g.cross_keys : g.length;
    if (keys == 0) continue;
    const std::int64_t rows = g.count * b.shard.heads * g.length, scores = rows * keys;
    const bool fused = fused_softmax(b, rows, keys);
    saved.add("probabilities", scores, kBf16);  // read by the backward of P V
    // The softmax output is a tensor of its own if it is fp32 or goes through dropout.
    if (!fused) saved.add("softmax in fp32", scores, kFp32);
    saved.add_if(fused && software.dropout, "softmax", scores, kBf16);
    saved.add_if(software.dropout, "attention dropout mask", scores, kMask);
  }
}

// A frozen matrix with an adapter keeps its input too, and the adapter what is between its parts.
void add_adapter(Saved& saved, const Block& b, bool target, std::string_view input,
                 std::int64_t input_values, std::int64_t tokens) {
  if (b.shape.adapters.lora_rank == 0 || !target) return;
  saved.add_if(!b.setting.trained, input, input_values, kBf16);
  saved.add("adapter input", tokens * b.shape.adapters.lora_rank, kBf16);
}

// What recurrent_kernels.cpp needs again. Of the delta rule, what the convolution reads, all inputs
// of the chunks and their triangular solutions, the output and its gate; of Mamba-2, the projection
// itself, the output before and after its gate.
void add_recurrence(Saved& saved, const Block& b, std::int64_t tokens) {
  const Recurrence& r = b.shard.recurrence;
  if (r.delta()) {
    saved.add("convolution input", tokens * r.convolved(), kBf16);
    saved.add("query and key", tokens * 2 * (r.keys() + r.num_value_heads * r.key_head_dim), kBf16);
    saved.add("value", tokens * r.values(), kBf16);
    saved.add("solutions of chunks", tokens * r.num_value_heads * r.chunk_size, kBf16);
    saved.add("decay", tokens * r.num_value_heads, kFp32 + kBf16);
    saved.add("gate", tokens * r.values(), kBf16);
  } else {
    saved.add("projection", tokens * r.projected(), kBf16);
    saved.add("recurrence output before its gate", tokens * r.values(), kBf16);
  }
  saved.add("recurrence output", tokens * r.values(), kBf16);
  const Adapters& a = b.shape.adapters;
  if (a.lora_rank > 0 && a.output && !b.setting.trained)
    saved.add("output input", tokens * r.values(), kBf16);
  saved.add_operand("output input", tokens * r.values());
}

// From a block's input to query, key and value by way of latents. What runs again from there starts
// with the latents before their norms and the rotary key that heads share.
void add_latents(Saved& saved, const Block& b, std::int64_t tokens, const Rerun& rerun) {
  const LatentAttention& l = b.shape.latent;
  const std::int64_t rows = b.setting.rows(tokens);
  for (const std::int64_t width : {l.q_lora_rank, l.kv_lora_rank}) {
    saved.add_norm(b.shape.norm, "latent norm input", rows * width);
    if (!rerun.up_projections) saved.add_operand("latent", rows * width);
  }
  saved.add_if(rerun.up_projections, "rotary key", tokens * l.qk_rope_head_dim, kBf16);
}

void add_experts(Saved& saved, const Block& b, std::int64_t tokens, const Rerun& rerun) {
  if (rerun.experts) return;
  const ExpertShard x(b, tokens);
  const std::int64_t gate = b.shape.gated_mlp ? 2 : 1;
  const std::int64_t shared =
      ceil_div(b.shape.experts.shared_expert_intermediate_size, b.setting.tp());
  saved.add("router probabilities", b.setting.rows(tokens) * b.shape.experts.num_experts, kFp32);
  saved.add_operand("permuted tokens", x.rows * b.shape.hidden_size);
  const Adapters& a = b.shape.adapters;
  add_adapter(saved, b, a.up, "permuted tokens", x.rows * b.shape.hidden_size, x.rows);
  saved.add("expert activation input", gate * x.rows * x.width, kBf16);
  if (!rerun.expert_activation) {
    // A fused gated activation multiplies with the router's probability too; otherwise that
    // product reads the activation again.
    const bool fused = b.shape.gated_mlp && b.setting.software.fused_kernels;
    saved.add_if(!fused, "expert activation output", x.rows * x.width, kBf16);
    saved.add_operand("experts down input", x.rows * x.width);
    add_adapter(saved, b, a.down, "experts down input", x.rows * x.width, x.rows);
  }
  if (rerun.shared_experts) return;
  const std::int64_t input = b.setting.rows(tokens) * b.shape.hidden_size;
  add_adapter(saved, b, a.up && shared > 0, "mlp up input", input, tokens);
  add_adapter(saved, b, a.down && shared > 0, "shared down input", tokens * shared, tokens);
  saved.add("shared activation input", gate * tokens * shared, kBf16);
  saved.add_operand("shared down input", tokens * shared);
}

void add_mlp(Saved& saved, const Block& b, std::int64_t tokens, const Rerun& rerun) {
  const std::int64_t input = b.setting.rows(tokens) * b.shape.hidden_size;
  if (rerun.mlp) return;
  if (!rerun.mlp_norm && !b.shape.shared_norm) saved.add_operand("mlp up input", input);
  if (b.shape.experts.num_experts > 0) return add_experts(saved, b, tokens, rerun);
  add_adapter(saved, b, b.shape.adapters.up, "mlp up input", input, tokens);
  const std::int64_t values = tokens * b.shard.mlp;
  saved.add("activation input", (b.shape.gated_mlp ? 2 : 1) * values, kBf16);
  saved.add_if(b.shape.gated_mlp && !b.setting.software.fused_kernels, "silu output", values,
               kBf16);
  saved.add_operand("mlp down input", values);
  add_adapter(saved, b, b.shape.adapters.down, "mlp down input", values, tokens);
}

// The block's first half.
void add_mixer(Saved& saved, const Block& b, const TokenBatch& batch, const Rerun& rerun) {
  const Transformer& t = b.shape;
  const std::int64_t tokens = b.setting.local_tokens(batch);
  const std::int64_t values = b.setting.rows(tokens) * t.hidden_size;
  saved.add_norm(t.norm, "attention norm input", values);
  // Gathered again for the weight gradient.
  if (!rerun.input_norm) saved.add_operand("qkv input", values);
  add_adapter(saved, b, t.adapters.qkv, "qkv input", values, tokens);
  if (t.recurrence) {
    add_recurrence(saved, b, tokens);
  } else {
    if (t.latent) add_latents(saved, b, tokens, rerun);
    if (t.qk_norm || t.qk_norm_per_head)
      saved.add_norm(t.norm, "qk-norm input",
                     tokens * b.shard.q() + keys_of(b, batch) * b.shard.kv());
    add_attention(saved, b, batch, rerun);
    if (b.shard.gate) {
      saved.add("attention gate", tokens * b.shard.q(), kBf16);
      saved.add("gated attention output", tokens * b.shard.context(), kBf16);
    }
  }
  add_adapter(saved, b, t.adapters.output, "", 0, tokens);  // flash attention kept its output
  if (t.post_norms) saved.add_norm(t.norm, "post-attention norm input", values);
  saved.add_branch(t, values);
}

// A fused loss leaves gradients in place of the logits.
Traffic kept_of_logits(const LayerSetting& s) {
  return s.software.fused_cross_entropy ? kBf16 : Traffic{s.software.memory.logits_saved_bytes};
}

std::vector<SavedTensor> whole_block(const Block& b, const TokenBatch& batch, const Rerun& rerun) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  const std::int64_t values = s.rows(tokens) * t.hidden_size;  // of one [tokens, hidden] tensor
  Saved saved(s);
  if (t.joins_next_token) {
    saved.add("join norm inputs", 2 * values, kBf16);
    saved.add_if(s.trained, "join input", 2 * values, kBf16);
  }
  if (t.has_mixer) add_mixer(saved, b, batch, rerun);
  if (!t.has_mlp) return saved.take();
  saved.begin_second_half();
  if (!t.parallel_residual) saved.add_norm(t.norm, "mlp norm input", values);
  add_mlp(saved, b, tokens, rerun);
  if (t.post_norms) saved.add_norm(t.norm, "post-mlp norm input", values);
  saved.add_branch(t, values);
  return saved.take();
}

}  // namespace

Bytes total(const std::vector<SavedTensor>& tensors) {
  Bytes sum{};
  for (const SavedTensor& t : tensors) sum += t.bytes;
  return sum;
}

std::vector<SavedTensor> block_activations(const Block& b, const TokenBatch& batch,
                                           Recompute recompute) {
  if (!b.setting.has_backward()) return {};
  if (recompute != Recompute::full) return whole_block(b, batch, rerun_of(b, recompute));
  Saved saved(b.setting);
  saved.add("block input", b.setting.rows(b.setting.local_tokens(batch)) * b.shape.hidden_size,
            kBf16);
  return saved.take();
}

Bytes block_recomputed(const Block& b, const TokenBatch& batch, Recompute recompute) {
  if (recompute == Recompute::none) return {};
  const std::vector<SavedTensor> all = block_activations(b, batch, Recompute::none);
  const std::vector<SavedTensor> kept = block_activations(b, batch, recompute);
  if (recompute == Recompute::full) return total(all) - total(kept);
  const auto half = [](const std::vector<SavedTensor>& tensors, bool second) {
    Bytes sum{};
    for (const SavedTensor& t : tensors)
      if (t.second_half == second) sum += t.bytes;
    return sum;
  };
  const Bytes second = half(kept, true);
  return std::max(
      {Bytes{}, half(all, true) - second, half(all, false) - half(kept, false) - second});
}

Bytes block_gradients(const Block& b, const TokenBatch& batch) {
  const LayerSetting& s = b.setting;
  if (!s.has_backward()) return {};
  const std::int64_t tokens = s.local_tokens(batch);
  const std::int64_t h = b.shape.hidden_size;
  const std::int64_t matrices = b.shape.gated_mlp ? 2 : 1;  // behind the activation
  const std::int64_t gathered = s.sequence_parallel ? tokens * h : 0;
  std::int64_t inner = tokens * b.shard.mlp, weights = matrices * h * b.shard.mlp, routed = 0;
  if (!b.shape.has_mlp) {
    const Linear input = b.input();
    inner = tokens * input.outputs;
    weights = h * input.outputs;
  }
  if (b.shape.experts.num_experts > 0) {  // routed rows beside the tokens
    const ExpertShard x(b, tokens);
    inner = x.rows * x.width;
    weights = matrices * h * x.width * x.experts;
    routed = x.rows * h;
  }
  std::int64_t values = s.rows(tokens) * h + routed + std::max(gathered + inner, matrices * inner);
  if (s.trained && s.software.grad_accumulation_bytes_per_parameter > 0) values += weights;
  // While a recurrence goes back: gradients of its inputs, w and u, states of chunks and theirs.
  if (const Recurrence& r = b.shard.recurrence)
    values = std::max(values, s.rows(tokens) * h + tokens * r.projected() +
                                  tokens * r.num_value_heads *
                                      (4 * r.key_head_dim + 3 * r.value_head_dim +
                                       2 * r.key_head_dim * r.value_head_dim / r.chunk_size));
  if (s.image_gradient) values += b.keys(batch) * h;
  return s.activation(values);
}

std::vector<SavedTensor> encoder_embedding_activations(const LayerSetting& s, const Encoder& e,
                                                       std::int64_t tokens) {
  Saved saved(s);
  saved.add_if(s.trained && e.patch_values > 0, "patches", tokens * e.patch_values, kBf16);
  return saved.take();
}

std::vector<SavedTensor> llm_embedding_activations(const LayerSetting& s, const Llm& llm,
                                                   std::int64_t tokens, std::int64_t cross_keys) {
  Saved saved(s);
  saved.add_if(s.trained, "token ids", tokens, kInt64);
  saved.add_if(cross_keys > 0, "image tokens", cross_keys * llm.blocks.hidden_size, kBf16);
  saved.add_if(s.has_backward() && s.software.dropout, "dropout mask",
               s.rows(tokens) * llm.blocks.hidden_size, kMask);
  return saved.take();
}

std::vector<SavedTensor> projector_activations(const LayerSetting& s, const Encoder& e,
                                               const TokenBatch& batch) {
  if (!s.has_backward() || e.projector_sizes.size() < 2) return {};
  Saved saved(s);
  const std::int64_t tokens = projector_rows(e, batch) * (1 + e.deepstack_features);
  saved.add_if(e.projector_norm, "projector norm input", tokens * e.projector_sizes.front(), kBf16);
  saved.add_if(s.trained, "projector input", tokens * e.projector_sizes.front(), kBf16);
  for (std::size_t i = 1; i + 1 < e.projector_sizes.size(); ++i) {
    // What a column-split GEMM made is split over ranks; what a row-split one made is not.
    const std::int64_t width =
        i % 2 == 1 ? ceil_div(e.projector_sizes[i], s.tp()) : e.projector_sizes[i];
    saved.add("projector gelu input", tokens * width * (gates(e, i - 1) ? 2 : 1), kBf16);
    saved.add_if(s.trained, "projector gelu output", tokens * width, kBf16);
  }
  if (e.resampler) {
    const TokenBatch latents = latents_of(e, batch);
    const Block block(e.resampler.blocks, resampler_setting(s));
    const Bytes each = total(whole_block(block, latents, Rerun{}));
    for (std::int64_t i = 0; i < e.resampler.blocks.num_hidden_layers; ++i) {
      saved.add("resampler keys", latents.cross_keys() * block.shape.hidden_size, kBf16);
      saved.add("resampler block", each.value, 1);
    }
  }
  return saved.take();
}

std::vector<SavedTensor> head_activations(const LayerSetting& s, const Llm& llm,
                                          std::int64_t tokens) {
  if (!s.has_backward()) return {};
  tokens *= 1 + llm.num_nextn_predict_layers;
  const std::int64_t values = s.rows(tokens) * llm.blocks.hidden_size;
  Saved saved(s);
  saved.add_norm(llm.blocks.norm, "final norm input", values);
  saved.add_if(s.trained, "logits input", values, kBf16);
  saved.add("softmax or logits", tokens * s.vocabulary_shard(llm.vocab_size), kept_of_logits(s));
  return saved.take();
}

Bytes head_working_memory(const LayerSetting& s, const Llm& llm, std::int64_t tokens) {
  if (s.software.fused_cross_entropy) return {};
  return {tokens * s.vocabulary_shard(llm.vocab_size) * s.software.memory.logits_working_bytes};
}

Bytes head_backward_memory(const LayerSetting& s, const Llm& llm, std::int64_t tokens) {
  const Bytes loss = head_working_memory(s, llm, tokens);
  if (!s.has_backward()) return loss;
  const std::int64_t h = llm.blocks.hidden_size, vocabulary = s.vocabulary_shard(llm.vocab_size);
  const Bytes kept{
      kept_of_logits(s).of(tokens * vocabulary, s.software.precision.activation_bytes)};
  std::int64_t values = tokens * h;  // the input's gradient
  if (s.sequence_parallel) values += s.rows(tokens) * h;
  if (s.sequence_parallel && s.trained) values += tokens * h;  // the input, gathered
  if (s.trained && s.software.memory.head_weight_gradient) values += vocabulary * h;
  const Bytes product = s.activation(tokens * vocabulary + values);
  return std::max(loss, product - kept);
}

}  // namespace mllmsim::costs
