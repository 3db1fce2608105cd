#include "cost_models/layers/activation_memory.hpp"

#include <algorithm>

namespace mllmsim::costs {
namespace {

class Saved {
 public:
  explicit Saved(const LayerSetting& s) : s_(s) {}

  void add(std::string_view name, std::int64_t values, std::int64_t bytes_per_value) {
    tensors_.push_back({name, Bytes{values * bytes_per_value}});
  }
  void add_if(bool kept, std::string_view name, std::int64_t values, std::int64_t bytes_per_value) {
    if (kept) add(name, values, bytes_per_value);
  }

  // What a product reads again for a weight gradient, quantised if the product was.
  void add_operand(std::string_view name, std::int64_t values) {
    if (s_.trained) tensors_.push_back({name, s_.operand(values)});
  }

  // A fused norm keeps its input. Eager RMSNorm keeps an fp32 copy of it and, for the gradient of
  // its weight, the normalised values in bf16.
  void add_norm(Norm norm, std::string_view name, std::int64_t values) {
    if (s_.software.fused_norms || norm == Norm::layer_norm)
      add(name, values, kBf16);
    else
      add(name, values, 4 + (s_.trained ? 2 : 0));
  }

  // The end of a residual branch: layer scale keeps what it scales, dropout its mask.
  void add_branch(const Transformer& t, std::int64_t values) {
    add_if(t.layer_scale && s_.trained, "layer scale input", values, kBf16);
    add_if(s_.software.dropout, "dropout mask", values, kMask);
  }

  std::vector<SavedTensor> take() { return std::move(tensors_); }

 private:
  const LayerSetting& s_;
  std::vector<SavedTensor> tensors_;
};

void add_attention(Saved& saved, const Block& b, const TokenBatch& batch, bool keep_scores) {
  const std::int64_t tokens = b.setting.local_tokens(batch);
  const Software& software = b.setting.software;
  saved.add("query", tokens * b.shard.q(), kBf16);
  // Unfused attention repeats key-value heads for their queries and keeps the copies.
  const std::int64_t kv = software.flash_attention ? b.shard.key_value() : 2 * b.shard.q();
  saved.add("key and value", tokens * kv, kBf16);
  if (software.flash_attention) {
    saved.add("attention output", tokens * b.shard.context(), kBf16);
    const bool transposed = software.memory.transpose_attention_output && b.setting.trained &&
                            batch.groups.size() == 1 && batch.sequences() > 1;
    saved.add_if(transposed, "attention output, transposed", tokens * b.shard.context(), kBf16);
    saved.add("attention log-sum-exp", tokens * b.shard.heads, kFp32);
    if (b.setting.quantises())
      saved.add_operand("attention output, quantised", tokens * b.shard.q());
    return;
  }
  saved.add_if(b.setting.trained, "attention output", tokens * b.shard.context(), kBf16);
  if (!keep_scores) return;
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size)) {
    const std::int64_t scores = g.count * b.shard.heads * g.length * g.length;
    saved.add("probabilities", scores, kBf16);  // read by the backward of P V
    // The softmax output is a tensor of its own if it is fp32 or goes through dropout.
    if (!software.fused_kernels) saved.add("softmax in fp32", scores, kFp32);
    saved.add_if(software.fused_kernels && software.dropout, "softmax", scores, kBf16);
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

// From a block's input to query, key and value by way of latents.
void add_latents(Saved& saved, const Block& b, std::int64_t rows) {
  const LatentAttention& l = b.shape.latent;
  for (const std::int64_t width : {l.q_lora_rank, l.kv_lora_rank}) {
    saved.add_norm(b.shape.norm, "latent norm input", rows * width);
    saved.add_if(b.setting.trained, "latent", rows * width, kBf16);
  }
}

void add_experts(Saved& saved, const Block& b, std::int64_t tokens) {
  const Experts& x = b.shape.experts;
  const RoutedRows rows(x, tokens);
  const std::int64_t gate = b.shape.gated_mlp ? 2 : 1;
  const std::int64_t width = ceil_div(x.moe_intermediate_size, b.setting.tp());
  const std::int64_t shared = ceil_div(x.shared_expert_intermediate_size, b.setting.tp());
  saved.add("router probabilities", b.setting.rows(tokens) * x.num_experts, kFp32);
  saved.add_if(b.setting.trained, "permuted tokens", rows.all * b.shape.hidden_size, kBf16);
  saved.add("expert activation input", gate * rows.all * width, kBf16);
  saved.add_if(b.setting.trained, "experts down input", rows.all * width, kBf16);
  saved.add("shared activation input", gate * tokens * shared, kBf16);
  saved.add_if(b.setting.trained, "shared down input", tokens * shared, kBf16);
}

void add_mlp(Saved& saved, const Block& b, std::int64_t tokens) {
  if (b.shape.experts.num_experts > 0) return add_experts(saved, b, tokens);
  const std::int64_t values = tokens * b.shard.mlp;
  saved.add("activation input", (b.shape.gated_mlp ? 2 : 1) * values, kBf16);
  saved.add_if(b.shape.gated_mlp && !b.setting.software.fused_kernels, "silu output", values,
               kBf16);
  saved.add_operand("mlp down input", values);
  add_adapter(saved, b, b.shape.adapters.down, "mlp down input", values, tokens);
}

std::vector<SavedTensor> whole_block(const Block& b, const TokenBatch& batch, bool keep_scores) {
  const Transformer& t = b.shape;
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  const std::int64_t values = s.rows(tokens) * t.hidden_size;  // of one [tokens, hidden] tensor
  Saved saved(s);
  if (t.joins_next_token) {
    saved.add("join norm inputs", 2 * values, kBf16);
    saved.add_if(s.trained, "join input", 2 * values, kBf16);
  }
  saved.add_norm(t.norm, "attention norm input", values);
  saved.add_operand("qkv input", values);  // gathered again for the weight gradient
  add_adapter(saved, b, t.adapters.qkv, "qkv input", values, tokens);
  if (t.latent) add_latents(saved, b, s.rows(tokens));
  if (t.qk_norm || t.qk_norm_per_head)
    saved.add_norm(t.norm, "qk-norm input", tokens * (b.shard.q() + b.shard.kv()));
  add_attention(saved, b, batch, keep_scores);
  add_adapter(saved, b, t.adapters.output, "", 0, tokens);  // flash attention kept its output
  if (t.post_norms) saved.add_norm(t.norm, "post-attention norm input", values);
  saved.add_branch(t, values);
  saved.add_norm(t.norm, "mlp norm input", values);
  saved.add_operand("mlp up input", values);
  add_adapter(saved, b, t.adapters.up, "mlp up input", values, tokens);
  add_mlp(saved, b, tokens);
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
  if (recompute != Recompute::full) return whole_block(b, batch, recompute == Recompute::none);
  Saved saved(b.setting);
  saved.add("block input", b.setting.rows(b.setting.local_tokens(batch)) * b.shape.hidden_size,
            kBf16);
  return saved.take();
}

Bytes block_gradients(const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  if (!s.has_backward()) return {};
  const std::int64_t h = b.shape.hidden_size;
  const std::int64_t matrices = b.shape.gated_mlp ? 2 : 1;  // behind the activation
  const std::int64_t gathered = s.sequence_parallel ? tokens * h : 0;
  std::int64_t inner = tokens * b.shard.mlp, weights = matrices * h * b.shard.mlp, routed = 0;
  if (const Experts& x = b.shape.experts; x.num_experts > 0) {  // routed rows beside the tokens
    const std::int64_t width = ceil_div(x.moe_intermediate_size, s.tp());
    const std::int64_t rows = RoutedRows(x, tokens).all;
    inner = rows * width;
    weights = matrices * h * width * x.num_experts;
    routed = rows * h;
  }
  std::int64_t values = s.rows(tokens) * h + routed + std::max(gathered + inner, matrices * inner);
  if (s.trained && s.software.grad_accumulation_bytes_per_parameter > 0) values += weights;
  return Bytes{values * kBf16};
}

std::vector<SavedTensor> encoder_embedding_activations(const LayerSetting& s, const Encoder& e,
                                                       std::int64_t tokens) {
  Saved saved(s);
  saved.add_if(s.trained && e.patch_values > 0, "patches", tokens * e.patch_values, kBf16);
  return saved.take();
}

std::vector<SavedTensor> llm_embedding_activations(const LayerSetting& s, const Llm& llm,
                                                   std::int64_t tokens) {
  Saved saved(s);
  saved.add_if(s.trained, "token ids", tokens, kInt64);
  saved.add_if(s.has_backward() && s.software.dropout, "dropout mask",
               s.rows(tokens) * llm.blocks.hidden_size, kMask);
  return saved.take();
}

std::vector<SavedTensor> projector_activations(const LayerSetting& s, const Encoder& e,
                                               std::int64_t tokens) {
  if (!s.has_backward() || e.projector_sizes.size() < 2) return {};
  Saved saved(s);
  tokens *= 1 + e.deepstack_features;
  saved.add_if(e.projector_norm, "projector norm input", tokens * e.projector_sizes.front(), kBf16);
  saved.add_if(s.trained, "projector input", tokens * e.projector_sizes.front(), kBf16);
  for (std::size_t i = 1; i + 1 < e.projector_sizes.size(); ++i) {
    // What a column-split GEMM made is split over ranks; what a row-split one made is not.
    const std::int64_t width =
        i % 2 == 1 ? ceil_div(e.projector_sizes[i], s.tp()) : e.projector_sizes[i];
    saved.add("projector gelu input", tokens * width, kBf16);
    saved.add_if(s.trained, "projector gelu output", tokens * width, kBf16);
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
  // A fused loss leaves gradients in place of the logits.
  saved.add("softmax or logits", tokens * s.vocabulary_shard(llm.vocab_size),
            s.software.fused_cross_entropy ? kBf16 : s.software.memory.logits_saved_bytes);
  return saved.take();
}

Bytes head_working_memory(const LayerSetting& s, const Llm& llm, std::int64_t tokens) {
  if (s.software.fused_cross_entropy) return {};
  return {tokens * s.vocabulary_shard(llm.vocab_size) * s.software.memory.logits_working_bytes};
}

}  // namespace mllmsim::costs
