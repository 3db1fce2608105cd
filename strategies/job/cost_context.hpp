// Where durations come from: what a strategy asks while it plans, and lowering when it makes tasks.
#pragma once

namespace mllmsim::costs {
class KernelCosts;
class LayerCosts;
}  // namespace mllmsim::costs

namespace mllmsim {

class Network;

struct CostContext {
  const Network& network;
  const costs::KernelCosts& kernels;
  costs::LayerCosts& layers;
};

}  // namespace mllmsim
