// Where durations come from: what a strategy asks while it plans, and lowering when it makes tasks.
#pragma once

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/world/network.hpp"

namespace mllmsim {

struct CostContext {
  const Network& network;
  const costs::KernelCosts& kernels;
  costs::LayerCosts& layers;
};

}  // namespace mllmsim
