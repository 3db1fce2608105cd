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
namespace lower {
class KnownRoutes;
}

struct CostContext {
  const Network& network;
  lower::KnownRoutes& routes;  // of the network
  const costs::KernelCosts& kernels;
  costs::LayerCosts& layers;
  Progress* progress = nullptr;  // nobody, if null
  // Of encoders beside the pipeline, with the parallel sizes of the plan; made anew if null.
  costs::LayerCosts* encoder_layers = nullptr;
};

}  // namespace mllmsim
