// FLOPs of a layer as MFU counts them, and what it sends to the next stage.
#include <algorithm>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "cost_models/layers/model_flops.hpp"

namespace mllmsim::costs {

Flops LayerCosts::model_flops(const Layer& layer, const MicroBatch& mb) const {
  return layer_flops(model_, layer, is_llm(model_, layer) ? mb.llm : mb.encoders[layer.module]);
}

Bytes LayerCosts::boundary(const Layer& layer, const MicroBatch& mb) const {
  const std::int64_t h = blocks_of(model_, layer).hidden_size;
  if (is_llm(model_, layer)) {
    if (layer.kind == LayerKind::head) return {};
    // DeepStack's features go along until the block that takes them.
    const std::int64_t taken = layer.kind == LayerKind::block ? layer.index + 1 : 0;
    const LayerSetting s = setting_of(layer);
    std::int64_t tokens = s.local_tokens(mb.llm);
    // Image tokens that a later block sees by cross-attention, too.
    if (taken < crossing_blocks_) tokens += mb.llm.cross_keys();
    for (std::size_t e = 0; e < model_.encoders.size(); ++e)
      tokens += std::max<std::int64_t>(0, model_.encoders[e].deepstack_features - taken) *
                ceil_div(projected_tokens(model_.encoders[e], mb.encoders[e]), s.cp());
    return {tokens * h * software_.precision.activation_bytes};
  }
  const auto projected = [&](std::size_t e) {
    return projected_tokens(model_.encoders[e], mb.encoders[e]) *
           projected_width(model_.encoders[e]) * (1 + model_.encoders[e].deepstack_features);
  };
  std::int64_t values = layer.kind == LayerKind::projector ? projected(layer.module)
                                                           : mb.encoders[layer.module].tokens() * h;
  for (std::size_t e = 0; e < layer.module; ++e) values += projected(e);
  return {values * software_.precision.activation_bytes};
}

}  // namespace mllmsim::costs
