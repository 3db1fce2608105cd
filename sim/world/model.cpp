#include "sim/world/model.hpp"

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

std::int64_t norm_parameters(Norm norm, std::int64_t width) {
  return norm == Norm::layer_norm ? 2 * width : width;
}

std::int64_t attention_parameters(const Transformer& t) {
  const std::int64_t h = t.hidden_size;
  const std::int64_t q = t.num_attention_heads * t.head_dim;
  const std::int64_t kv = t.num_key_value_heads * t.head_dim;
  std::int64_t n = h * (q + 2 * kv) + q * h;
  if (t.qkv_bias) n += q + 2 * kv;
  if (t.linear_bias) n += h;
  if (t.qk_norm) n += norm_parameters(t.norm, q) + norm_parameters(t.norm, kv);
  return n;
}

std::int64_t block_parameters(const Transformer& t) {
  const std::int64_t h = t.hidden_size;
  const std::int64_t mlp_in = (t.gated_mlp ? 2 : 1) * t.intermediate_size;
  std::int64_t n = attention_parameters(t) + h * mlp_in + t.intermediate_size * h;
  if (t.linear_bias) n += mlp_in + h;
  n += 2 * norm_parameters(t.norm, h);
  if (t.layer_scale) n += 2 * h;
  return n;
}

std::int64_t projector_parameters(const Encoder& e) {
  if (e.projector_sizes.empty()) return 0;
  std::int64_t n = 2 * e.projector_sizes.front();  // its LayerNorm
  for (std::size_t i = 0; i + 1 < e.projector_sizes.size(); ++i)
    n += (e.projector_sizes[i] + 1) * e.projector_sizes[i + 1];
  return n;
}

std::int64_t encoder_embedding_parameters(const Encoder& e) {
  if (e.patch_values == 0) return 0;
  return (e.patch_values + 1) * e.blocks.hidden_size + e.tokens_per_tile * e.blocks.hidden_size;
}

}  // namespace

bool is_llm(const Model& model, const Layer& layer) {
  return layer.module == model.encoders.size();
}

const Transformer& blocks_of(const Model& model, const Layer& layer) {
  return is_llm(model, layer) ? model.llm.blocks : model.encoders[layer.module].blocks;
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
      return block_parameters(t);
    case LayerKind::projector:
      return projector_parameters(model.encoders[layer.module]);
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
  const bool whole = layer.kind == LayerKind::block && t.replicates_attention(tp);
  const std::int64_t replicated = whole ? attention_parameters(t) : 0;
  return replicated + (parameters(model, layer) - replicated + tp - 1) / tp;
}

bool trained(const Model& model, const Layer& layer) {
  if (is_llm(model, layer)) return model.llm.trained;
  const Encoder& e = model.encoders[layer.module];
  return layer.kind == LayerKind::projector ? e.projector_trained : e.trained;
}

bool needs_input_gradient(const Model& model, const Layer& layer) {
  if (layer.kind == LayerKind::embedding && !is_llm(model, layer)) return false;
  if (!is_llm(model, layer)) return model.encoders[layer.module].trained;
  if (layer.kind != LayerKind::embedding && model.llm.trained) return true;
  for (const Encoder& e : model.encoders)
    if (e.trained || (e.projector_trained && !e.projector_sizes.empty())) return true;
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
