#include "cost_models/layers/model_flops.hpp"

#include <algorithm>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/end_kernels.hpp"

namespace mllmsim::costs {
namespace {

struct Passes {
  double products = 1;  // forward, and a backward for inputs and for weights
  double attention = 1;
  double image_products = 1;  // of image tokens that cross-attention sees
};

Passes passes_of(const Model& model, const Layer& layer) {
  const bool images = is_llm(model, layer) && layer.kind == LayerKind::block &&
                      blocks_of(model, layer).cross_attention && images_learn(model);
  const bool backward = trained(model, layer) || has_adapters(model, layer) ||
                        stream_needs_gradient(model, layer) || images;
  const bool patches = layer.kind == LayerKind::embedding;  // whose input is data
  return {1.0 + (backward && !patches ? 1.0 : 0.0) + (trained(model, layer) ? 1.0 : 0.0),
          backward ? 3.0 : 1.0, 1.0 + (images ? 1.0 : 0.0) + (trained(model, layer) ? 1.0 : 0.0)};
}

// Of a recurrence token by token, as a model and not its kernels have it: the state is written to
// and read from (4 K V), and read before it is written by the delta rule (2 K V).
Flops recurrence_flops(const Recurrence& r, const TokenBatch& batch) {
  const std::int64_t state = r.num_value_heads * r.key_head_dim * r.value_head_dim;
  return {static_cast<double>(batch.tokens()) * static_cast<double>((r.delta() ? 6 : 4) * state)};
}

Flops attention_flops(const Transformer& t, std::vector<SequenceGroup> sequences) {
  const Attention whole{std::move(sequences),
                        t.num_attention_heads,
                        t.num_key_value_heads,
                        BlockShard(t, 1).even_head_dim(),
                        t.causal && !t.cross_attention,
                        false,
                        0,
                        t.cross_attention ? 0 : t.sliding_window,
                        t.cross_attention};
  return whole.flops();
}

}  // namespace

Flops layer_flops(const Model& model, const Layer& layer, const TokenBatch& batch) {
  const Passes passes = passes_of(model, layer);
  const auto products = [](double times, std::int64_t tokens, std::int64_t values) {
    return Flops{times * 2.0 * static_cast<double>(tokens) * static_cast<double>(values)};
  };
  const auto product = [&](std::int64_t tokens, std::int64_t values) {
    return products(passes.products, tokens, values);
  };
  const std::int64_t values = matrix_values(model, layer);
  if (layer.kind == LayerKind::block) {
    const Transformer& t = blocks_of(model, layer);
    Flops flops = product(batch.tokens(), values);
    if (t.cross_attention)
      flops += products(passes.image_products, batch.cross_keys(), cross_values(t));
    if (!t.has_mixer) return flops;
    if (t.recurrence) return flops + recurrence_flops(t.recurrence, batch) * passes.attention;
    return flops + attention_flops(t, chunked(batch, t.attention_chunk_size)) * passes.attention;
  }
  if (layer.kind != LayerKind::projector) return product(batch.tokens(), values);
  const Encoder& e = model.encoders[layer.module];
  Flops flops = product(projector_rows(e, batch), values);
  if (const Resampler& r = e.resampler) {
    const TokenBatch latents = latents_of(e, batch);
    const auto layers = static_cast<double>(r.blocks.num_hidden_layers);
    flops += product(latents.tokens(), latent_values(r));
    flops += product(latents.cross_keys(), cross_values(r.blocks)) * layers;
    flops += attention_flops(r.blocks, latents.groups) * (passes.attention * layers);
  }
  return flops;
}

ModelFlops::ModelFlops(const Model& model) : model_(model), kinds_(model.encoders.size() + 1) {
  for (const Layer& layer : layers_of(model)) {
    std::vector<Kind>& kinds = kinds_[layer.module];
    const auto alike = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) {
      return k.layer.kind == layer.kind && block_kind(model, k.layer) == block_kind(model, layer) &&
             passes_of(model, k.layer).products == passes_of(model, layer).products;
    });
    if (alike == kinds.end())
      kinds.push_back({layer, 1});
    else
      ++alike->count;
  }
}

Flops ModelFlops::of(std::size_t module, const TokenBatch& batch) const {
  Flops sum{};
  for (const Kind& k : kinds_[module]) sum += layer_flops(model_, k.layer, batch) * k.count;
  return sum;
}

}  // namespace mllmsim::costs
