// Where durations come from: what a strategy asks while it plans, and lowering when it makes tasks.
// And whom a strategy that plans for long tells how far it is.
#pragma once

namespace mllmsim::costs {
class KernelCosts;
class LayerCosts;
}  // namespace mllmsim::costs

namespace mllmsim {

class Network;
class Progress;

struct CostContext {
  const Network& network;
  const costs::KernelCosts& kernels;
  costs::LayerCosts& layers;
  Progress* progress = nullptr;  // nobody, if null
};

}  // namespace mllmsim
