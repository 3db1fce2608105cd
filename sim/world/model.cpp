#include "sim/world/model.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/world/rank_parameters.hpp"

namespace mllmsim {
namespace {

std::int64_t norm_parameters(Norm norm, std::int64_t width) {
  return norm == Norm::layer_norm ? 2 * width : width;
}

// Values in the matrices of attention, and how many of them every tp rank repeats.
struct AttentionValues {
  std::int64_t all = 0, repeated = 0;
};

AttentionValues attention_values(const Transformer& t) {
  const std::int64_t h = t.hidden_size, heads = t.num_attention_heads;
  const LatentAttention& l = t.latent;
  if (!t.has_mixer) return {};
  if (t.recurrence) return {h * (t.recurrence.projected() + t.recurrence.values()), 0};
  if (!l) {
    const std::int64_t kv_heads = t.num_key_value_heads;
    return {h * t.head_dim * ((t.attention_gate ? 3 : 2) * heads + 2 * kv_heads), 0};
  }
  const std::int64_t query = heads * (l.qk_nope_head_dim + l.qk_rope_head_dim);
  const std::int64_t down = h * (l.kv_lora_rank + l.qk_rope_head_dim) + h * l.q_lora_rank;
  const std::int64_t up = (l.q_lora_rank > 0 ? l.q_lora_rank : h) * query +
                          l.kv_lora_rank * heads * (l.qk_nope_head_dim + l.v_head_dim);
  return {down + up + heads * l.v_head_dim * h, down};
}

// Besides its matrices: the convolution, what decays and offsets each head, the norm.
std::int64_t small_parameters(const Recurrence& r) {
  if (r.delta()) return r.conv_kernel * r.convolved() + 2 * r.num_value_heads + r.value_head_dim;
  return (r.conv_kernel + 1) * r.convolved() + 3 * r.num_value_heads + r.values();
}

std::int64_t attention_parameters(const Transformer& t) {
  const std::int64_t h = t.hidden_size;
  std::int64_t n = attention_values(t).all;
  if (!t.has_mixer) return 0;
  if (t.recurrence) return n + small_parameters(t.recurrence);
  if (t.latent) return n + norm_parameters(t.norm, t.latent.q_lora_rank + t.latent.kv_lora_rank);
  const std::int64_t q = t.num_attention_heads * t.head_dim;
  const std::int64_t kv = t.num_key_value_heads * t.head_dim;
  if (t.qkv_bias) n += (t.attention_gate ? 2 : 1) * q + 2 * kv;
  if (t.linear_bias) n += h;
  if (t.qk_norm) n += norm_parameters(t.norm, q) + norm_parameters(t.norm, kv);
  if (t.qk_norm_per_head) n += 2 * norm_parameters(t.norm, t.head_dim);
  return n;
}

std::int64_t mlp_values(const Transformer& t, std::int64_t width) {
  return (t.gated_mlp ? 3 : 2) * t.hidden_size * width;
}

std::int64_t routed_parameters(const Transformer& t) {
  const Experts& x = t.experts;
  const std::int64_t in = t.gated_mlp ? 2 : 1;
  const std::int64_t bias = t.linear_bias ? in * x.moe_intermediate_size + t.hidden_size : 0;
  return x.num_experts * (mlp_values(t, x.moe_intermediate_size) + bias);
}

std::int64_t mlp_parameters(const Transformer& t) {
  const std::int64_t h = t.hidden_size, in = t.gated_mlp ? 2 : 1;
  const Experts& x = t.experts;
  if (!t.has_mlp) return 0;
  if (x.num_experts == 0)
    return mlp_values(t, t.intermediate_size) + (t.linear_bias ? in * t.intermediate_size + h : 0);
  return routed_parameters(t) + h * x.num_experts +
         mlp_values(t, x.shared_expert_intermediate_size);
}

std::int64_t block_parameters(const Transformer& t) {
  const std::int64_t h = t.hidden_size;
  std::int64_t n = attention_parameters(t) + mlp_parameters(t);
  n += t.norms() * norm_parameters(t.norm, h);
  if (t.layer_scale) n += 2 * h;
  if (t.gated_branches) n += 2;
  if (t.joins_next_token) n += 2 * h * h + 2 * norm_parameters(t.norm, h);
  return n;
}

// What every tp rank holds whole.
std::int64_t repeated_parameters(const Transformer& t, std::int64_t tp) {
  const std::int64_t router = t.hidden_size * t.experts.num_experts;
  const std::int64_t joined = t.joins_next_token ? 2 * t.hidden_size * t.hidden_size : 0;
  if (tp == 1) return 0;
  return router + joined +
         (t.replicates_attention(tp) ? attention_parameters(t) : attention_values(t).repeated);
}

// One beside each matrix of each routed expert, of which `ranks` hold a part.
std::int64_t expert_adapter_parameters(const Transformer& t, std::int64_t ranks) {
  const Adapters& a = t.adapters;
  const std::int64_t h = t.hidden_size, w = t.experts.moe_intermediate_size;
  const auto split = [&](std::int64_t n) { return (n + ranks - 1) / ranks; };
  const std::int64_t up = a.up ? h + split((t.gated_mlp ? 2 : 1) * w) : 0;
  const std::int64_t down = a.down ? split(w) + h : 0;
  return t.has_mlp ? t.experts.num_experts * a.lora_rank * (up + down) : 0;
}

// In a pair of thin matrices, x A (inputs x rank) and B (rank x outputs); of row-split matrices A
// is split over ranks, of others B.
std::int64_t adapter_parameters(const Transformer& t, std::int64_t tp) {
  const Adapters& a = t.adapters;
  if (a.lora_rank == 0) return 0;
  const std::int64_t h = t.hidden_size;
  const auto split = [&](std::int64_t n) { return (n + tp - 1) / tp; };
  const std::int64_t q = t.recurrence ? t.recurrence.values() : t.num_attention_heads * t.head_dim;
  const std::int64_t qkv =
      t.recurrence ? t.recurrence.projected()
                   : (t.attention_gate ? 2 : 1) * q + 2 * t.num_key_value_heads * t.head_dim;
  const std::int64_t width =
      t.experts.num_experts > 0 ? t.experts.shared_expert_intermediate_size : t.intermediate_size;
  const std::int64_t up = (t.gated_mlp ? 2 : 1) * width;
  std::int64_t values = 0;
  if (a.qkv) values += (t.cross_attention ? 2 : 1) * h + split(qkv);  // keys have their own input
  if (a.output) values += split(q) + h;
  const bool mlp_up = a.up && width > 0, mlp_down = a.down && width > 0;
  if (mlp_up) values += h + split(up);
  if (mlp_down) values += split(width) + h;
  std::int64_t n = a.lora_rank * values;
  if (a.use_dora)  // a magnitude per output
    n += (a.qkv ? split(qkv) : 0) + (a.output ? h : 0) + (mlp_up ? split(up) : 0) +
         (mlp_down ? h : 0);
  return n + expert_adapter_parameters(t, tp);
}

// Blocks, the latents themselves, and norms of keys and of the output.
std::int64_t resampler_parameters(const Resampler& r) {
  if (!r) return 0;
  const Transformer& t = r.blocks;
  return t.num_hidden_layers * (block_parameters(t) + norm_parameters(t.norm, t.hidden_size)) +
         r.latents * t.hidden_size + norm_parameters(t.norm, t.hidden_size);
}

std::int64_t projector_parameters(const Encoder& e) {
  if (e.projector_sizes.empty()) return 0;
  std::int64_t n = e.projector_norm ? 2 * e.projector_sizes.front() : 0;  // its LayerNorm
  for (std::size_t i = 0; i + 1 < e.projector_sizes.size(); ++i)
    n += (e.projector_sizes[i] + (e.projector_bias ? 1 : 0)) * e.projector_sizes[i + 1] *
         (gates(e, i) ? 2 : 1);
  return n * (1 + e.deepstack_features);
}

std::int64_t encoder_embedding_parameters(const Encoder& e) {
  if (e.patch_values == 0) return 0;
  const std::int64_t unless_rotary = e.blocks.rotary ? 0 : e.tokens_per_tile;
  const std::int64_t positions = e.position_embeddings > 0 ? e.position_embeddings : unless_rotary;
  return (e.patch_values + 1 + positions) * e.blocks.hidden_size;
}

}  // namespace

bool gates(const Encoder& e, std::size_t gemm) {
  return e.projector_gated && gemm + 3 == e.projector_sizes.size();
}

bool is_llm(const Model& model, const Layer& layer) {
  return layer.module == model.encoders.size();
}

namespace {

// Whether images are in the stream that enters a layer of an LLM with cross-attention.
bool sees_images_before(const Model& model, const Layer& layer) {
  if (layer.kind == LayerKind::head) return true;
  if (layer.kind == LayerKind::embedding) return false;
  for (std::uint32_t i = 0; i < layer.index; ++i)
    if (blocks_of(model, {LayerKind::block, layer.module, i}).cross_attention) return true;
  return false;
}

const OtherBlocks& other_blocks(const Model& model, const Layer& layer) {
  return is_llm(model, layer) ? model.llm.other_blocks : model.encoders[layer.module].other_blocks;
}

}  // namespace

std::size_t block_kind(const Model& model, const Layer& layer) {
  return layer.kind == LayerKind::block ? other_blocks(model, layer).kind(layer.index) : 0;
}

const Transformer& blocks_of(const Model& model, const Layer& layer) {
  if (const std::size_t kind = block_kind(model, layer))
    return other_blocks(model, layer).kinds[kind - 1];
  return is_llm(model, layer) ? model.llm.blocks : model.encoders[layer.module].blocks;
}

bool crosses(const Model& model) {
  const auto& others = model.llm.other_blocks.kinds;
  return model.llm.blocks.cross_attention ||
         std::any_of(others.begin(), others.end(),
                     [](const Transformer& t) { return t.cross_attention; });
}

std::int64_t image_tokens_of(const Encoder& e, std::int64_t tiles, std::int64_t tokens) {
  if (e.resampler) return tiles * e.resampler.latents;
  return e.tokens_per_output_token > 0 ? tokens / e.tokens_per_output_token
                                       : tiles * e.output_tokens_per_tile;
}

std::vector<const Transformer*> block_kinds(const Transformer& first, const OtherBlocks& others) {
  std::vector<const Transformer*> out{&first};
  for (const Transformer& t : others.kinds) out.push_back(&t);
  return out;
}

std::vector<Layer> layers_of(const Model& model) {
  std::vector<Layer> out;
  const auto add_blocks = [&](std::uint16_t module, const Transformer& t) {
    out.push_back({LayerKind::embedding, module, 0});
    for (std::uint32_t i = 0; i < t.num_hidden_layers; ++i)
      out.push_back({LayerKind::block, module, i});
  };
  for (std::size_t e = 0; e < model.encoders.size(); ++e) {
    const auto module = static_cast<std::uint16_t>(e);
    add_blocks(module, model.encoders[e].blocks);
    out.push_back({LayerKind::projector, module, 0});
  }
  const auto llm = static_cast<std::uint16_t>(model.encoders.size());
  add_blocks(llm, model.llm.blocks);
  out.push_back({LayerKind::head, llm, 0});
  return out;
}

std::int64_t parameters(const Model& model, const Layer& layer) {
  const Transformer& t = blocks_of(model, layer);
  switch (layer.kind) {
    case LayerKind::block:
      return block_parameters(t) + adapter_parameters(t, 1);
    case LayerKind::projector:
      return projector_parameters(model.encoders[layer.module]) +
             resampler_parameters(model.encoders[layer.module].resampler);
    case LayerKind::embedding:
      if (!is_llm(model, layer)) return encoder_embedding_parameters(model.encoders[layer.module]);
      return (model.llm.vocab_size + (t.rotary ? 0 : model.llm.max_position_embeddings)) *
             t.hidden_size;
    case LayerKind::head: {
      // Tied embeddings still live on the last stage too (Megatron keeps a copy there),
      // but count once.
      const std::int64_t matrix =
          model.llm.tie_word_embeddings ? 0 : model.llm.vocab_size * t.hidden_size;
      return norm_parameters(t.norm, t.hidden_size) + matrix;
    }
  }
  throw InternalError("unknown layer kind");
}

std::int64_t parameters(const Model& model) {
  std::int64_t n = 0;
  for (const Layer& layer : layers_of(model)) n += parameters(model, layer);
  return n;
}

std::int64_t parameters_per_rank(const Model& model, const Layer& layer, std::int64_t tp) {
  const Transformer& t = blocks_of(model, layer);
  if (layer.kind == LayerKind::projector) {  // every rank has the whole resampler
    const Encoder& e = model.encoders[layer.module];
    return (projector_parameters(e) + tp - 1) / tp + resampler_parameters(e.resampler);
  }
  if (layer.kind != LayerKind::block) return (parameters(model, layer) + tp - 1) / tp;
  const std::int64_t repeated = repeated_parameters(t, tp);
  return repeated + (block_parameters(t) - repeated + tp - 1) / tp + adapter_parameters(t, tp);
}

std::int64_t expert_parameters(const Model& model, const Layer& layer) {
  return layer.kind == LayerKind::block ? routed_parameters(blocks_of(model, layer)) : 0;
}

namespace {

RankParameters adapter_rank_parameters(const Transformer& t, const Parallelism& p) {
  const std::int64_t tp = p.tensor_model_parallel_size;
  const std::int64_t all = adapter_parameters(t, tp);
  if (!p.experts_apart() || t.experts.num_experts == 0 || t.adapters.lora_rank == 0)
    return {all, 0};
  const std::int64_t ep = p.expert_model_parallel_size;
  return {all - expert_adapter_parameters(t, tp),
          (expert_adapter_parameters(t, p.expert_tensor_ranks()) + ep - 1) / ep};
}

}  // namespace

RankParameters rank_parameters(const Model& model, const Layer& layer, const Parallelism& p) {
  const std::int64_t tp = p.tensor_model_parallel_size;
  const std::int64_t experts = p.experts_apart() ? expert_parameters(model, layer) : 0;
  if (experts == 0) return {parameters_per_rank(model, layer, tp), 0};
  const Transformer& t = blocks_of(model, layer);
  const std::int64_t repeated = repeated_parameters(t, tp);
  const std::int64_t ranks = std::int64_t{p.expert_model_parallel_size} * p.expert_tensor_ranks();
  RankParameters all = adapter_rank_parameters(t, p);
  all += {repeated + (block_parameters(t) - experts - repeated + tp - 1) / tp,
          (experts + ranks - 1) / ranks};
  return all;
}

RankParameters trained_rank_parameters(const Model& model, const Layer& layer,
                                       const Parallelism& p) {
  if (trained(model, layer)) return rank_parameters(model, layer, p);
  if (layer.kind != LayerKind::block) return {};
  return adapter_rank_parameters(blocks_of(model, layer), p);
}

std::int64_t matrix_values(const Model& model, const Layer& layer) {
  const Transformer& t = blocks_of(model, layer);
  switch (layer.kind) {
    case LayerKind::block: {
      const Experts& x = t.experts;
      const std::int64_t joined = t.joins_next_token ? 2 * t.hidden_size * t.hidden_size : 0;
      const std::int64_t width =
          x.num_experts == 0
              ? t.intermediate_size
              : x.num_experts_per_tok * x.moe_intermediate_size + x.shared_expert_intermediate_size;
      return attention_values(t).all - cross_values(t) + mlp_values(t, width) +
             t.hidden_size * x.num_experts + joined;
    }
    case LayerKind::projector: {
      const Encoder& e = model.encoders[layer.module];
      std::int64_t n = 0;
      for (std::size_t i = 0; i + 1 < e.projector_sizes.size(); ++i)
        n += e.projector_sizes[i] * e.projector_sizes[i + 1] * (gates(e, i) ? 2 : 1);
      return n * (1 + e.deepstack_features);
    }
    case LayerKind::embedding:
      return is_llm(model, layer) ? 0 : model.encoders[layer.module].patch_values * t.hidden_size;
    case LayerKind::head:
      return (1 + model.llm.num_nextn_predict_layers) * model.llm.vocab_size * t.hidden_size;
  }
  throw InternalError("unknown layer kind");
}

std::int64_t cross_values(const Transformer& t) {
  return t.cross_attention ? 2 * t.hidden_size * t.num_key_value_heads * t.head_dim : 0;
}

std::int64_t latent_values(const Resampler& r) {
  const Transformer& t = r.blocks;
  return t.num_hidden_layers *
         (attention_values(t).all - cross_values(t) + mlp_values(t, t.intermediate_size));
}

bool trained(const Model& model, const Layer& layer) {
  if (is_llm(model, layer)) return model.llm.trained;
  const Encoder& e = model.encoders[layer.module];
  return layer.kind == LayerKind::projector ? e.projector_trained : e.trained;
}

bool has_adapters(const Model& model, const Layer& layer) {
  return layer.kind == LayerKind::block && blocks_of(model, layer).adapters.lora_rank > 0;
}

std::int64_t trained_parameters_per_rank(const Model& model, const Layer& layer, std::int64_t tp) {
  if (trained(model, layer)) return parameters_per_rank(model, layer, tp);
  return layer.kind == LayerKind::block ? adapter_parameters(blocks_of(model, layer), tp) : 0;
}

bool needs_input_gradient(const Model& model, const Layer& layer) {
  const Transformer& t = blocks_of(model, layer);
  const bool first =
      layer.kind == LayerKind::embedding || (layer.kind == LayerKind::block && layer.index == 0);
  if (t.adapters.lora_rank > 0 && !first) return true;
  if (layer.kind == LayerKind::embedding && !is_llm(model, layer)) return false;
  if (!is_llm(model, layer)) return model.encoders[layer.module].trained;
  return (layer.kind != LayerKind::embedding && model.llm.trained) || images_learn(model);
}

bool stream_needs_gradient(const Model& model, const Layer& layer) {
  if (!is_llm(model, layer) || !crosses(model) || model.llm.trained)
    return needs_input_gradient(model, layer);
  const bool adapted = layer.kind == LayerKind::head || layer.index > 0;
  if (adapted && model.llm.blocks.adapters.lora_rank > 0) return true;
  return images_learn(model) && sees_images_before(model, layer);
}

bool images_learn(const Model& model) {
  for (const Encoder& e : model.encoders)
    if (e.trained || e.blocks.adapters.lora_rank > 0 ||
        (e.projector_trained && !e.projector_sizes.empty()))
      return true;
  return false;
}

std::string layer_name(const Model& model, const Layer& layer) {
  const std::string& module =
      is_llm(model, layer) ? model.llm.name : model.encoders[layer.module].name;
  switch (layer.kind) {
    case LayerKind::embedding:
      return module + ".embedding";
    case LayerKind::block:
      return module + ".block";
    case LayerKind::projector:
      return module + ".projector";
    case LayerKind::head:
      return module + ".head";
  }
  throw InternalError("unknown layer kind");
}

}  // namespace mllmsim
