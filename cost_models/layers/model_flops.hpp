// FLOPs that training takes, whoever runs it: Megatron's convention of 2 per matrix value and token
// for each pass, attention over the whole square (of a window twice its pairs), heads and
// vocabulary as the model has them. Frozen weights have no pass for their gradients.
#pragma once

#include <vector>

#include "sim/base/units.hpp"
#include "sim/world/batch.hpp"
#include "sim/world/model.hpp"

namespace mllmsim::costs {

// Of one layer, for what it sees of a batch: the LLM's sequences, or an encoder's.
Flops layer_flops(const Model& model, const Layer& layer, const TokenBatch& batch);

// Of whole samples: sums over all layers, which are additive over sequences.
class ModelFlops {
 public:
  explicit ModelFlops(const Model& model);

  Flops llm(const TokenBatch& batch) const { return of(model_.encoders.size(), batch); }
  Flops encoder(std::size_t e, const TokenBatch& batch) const { return of(e, batch); }

 private:
  struct Kind {
    Layer layer;
    double count = 0;
  };
  Flops of(std::size_t module, const TokenBatch& batch) const;

  const Model& model_;
  std::vector<std::vector<Kind>> kinds_;  // by module; layers that are alike, and how many
};

}  // namespace mllmsim::costs
