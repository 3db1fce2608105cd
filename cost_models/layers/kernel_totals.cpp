#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::costs {

KernelTotals& KernelTotals::operator+=(const KernelTotals& other) {
  time += other.time;
  communication += other.communication;
  flops += other.flops;
  for (std::size_t s = 0; s < kSources; ++s) by_source[s] += other.by_source[s];
  beside_other_pass += other.beside_other_pass;
  launches += other.launches;
  expert_launches += other.expert_launches;
  return *this;
}

KernelTotals totals(const std::vector<TimedKernel>& kernels) {
  KernelTotals sum;
  for (const TimedKernel& k : kernels) {
    sum.time += k.time;
    if (k.communication) sum.communication += k.time;
    sum.flops += k.flops;
    sum.by_source[static_cast<std::size_t>(k.source)] += k.time;
    sum.beside_other_pass += k.beside_other_pass;
    sum.launches += k.launches;
    sum.expert_launches += k.expert_launches;
  }
  return sum;
}

LayerTotals totals(const LayerCost& cost) {
  return {totals(cost.forward), totals(cost.recompute), totals(cost.backward), cost.model_flops,
          cost.saved,           cost.working,           cost.recomputed};
}

}  // namespace mllmsim::costs
