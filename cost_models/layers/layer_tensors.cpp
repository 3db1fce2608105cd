// The tensors of a layer one by one, for the replay of an allocator (strategies/step/replay.hpp).
#include <algorithm>

#include "cost_models/layers/activation_memory.hpp"
#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::costs {
namespace {

std::vector<Bytes> sizes_of(const std::vector<SavedTensor>& tensors) {
  std::vector<Bytes> out;
  for (const SavedTensor& t : tensors)
    if (t.bytes.value > 0) out.push_back(t.bytes);
  return out;
}

void add(std::vector<Bytes>& out, Bytes bytes) {
  if (bytes.value > 0) out.push_back(bytes);
}

// Small tensors, less than a quarter of the largest, as one: they fit between the others.
std::vector<Bytes> joined(const std::vector<Bytes>& sizes) {
  if (sizes.empty()) return {};
  const Bytes largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<Bytes> out;
  Bytes small{};
  for (const Bytes b : sizes)
    if (b.value * 4 < largest.value)
      small += b;
    else
      out.push_back(b);
  if (small.value > 0) out.push_back(small);
  return out;
}

LayerTensors block_tensors(const Block& block, const TokenBatch& batch, Recompute recompute) {
  LayerTensors out;
  out.saved = joined(sizes_of(block_activations(block, batch, recompute)));
  if (!block.setting.has_backward()) {
    LayerSetting kept = block.setting;
    kept.trained = true;
    out.forward =
        joined(sizes_of(block_activations(Block(block.shape, kept), batch, Recompute::none)));
    return out;
  }
  if (recompute == Recompute::full) {
    out.forward = out.backward = joined(sizes_of(block_activations(block, batch, Recompute::none)));
  } else if (recompute == Recompute::selective) {
    add(out.backward, block_recomputed(block, batch, recompute));
  }
  const std::int64_t tokens = block.setting.local_tokens(batch);
  const Bytes gradients = block_gradients(block, batch);
  const Bytes inner = std::min(gradients, block.setting.activation(tokens * block.shard.mlp));
  add(out.backward, inner);
  add(out.backward, gradients - inner);
  return out;
}

}  // namespace

LayerTensors LayerCosts::tensors(const Layer& layer, const MicroBatch& mb,
                                 Recompute recompute) const {
  const LayerSetting s = setting_of(layer);
  const bool llm = is_llm(model_, layer);
  const TokenBatch batch = llm ? mb.llm : encoder_batch(layer, mb);
  const std::int64_t tokens = s.local_tokens(batch);
  LayerTensors out;
  if (tokens == 0) return out;
  switch (layer.kind) {
    case LayerKind::block:
      return block_tensors(Block(blocks_of(model_, layer), s), batch, recompute);
    case LayerKind::projector:
      out.saved = sizes_of(projector_activations(s, model_.encoders[layer.module], batch));
      break;
    case LayerKind::embedding:
      out.saved =
          sizes_of(llm ? llm_embedding_activations(s, model_.llm, tokens, mb.llm.cross_keys())
                       : encoder_embedding_activations(s, model_.encoders[layer.module], tokens));
      break;
    case LayerKind::head:
      out.saved = sizes_of(head_activations(s, model_.llm, tokens));
      add(out.forward, head_working_memory(s, model_.llm, tokens));
      add(out.backward, head_backward_memory(s, model_.llm, tokens));
      break;
  }
  return out;
}

}  // namespace mllmsim::costs
