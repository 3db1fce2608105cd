// Kernel costs with the times of some kinds of kernel multiplied: what would change if a
// calibration were off by so much?
#pragma once

#include "cost_models/kernels/kernel_costs.hpp"

namespace mllmsim::costs {

class ScaledCosts : public KernelCosts {
 public:
  ScaledCosts(const KernelCosts& costs, const CostFactors& factors) : costs_(costs), f_(factors) {}

  Cost gemm(const Gemm& k) const override { return times(costs_.gemm(k), f_.gemm); }
  Cost attention(const Attention& k) const override {
    return times(costs_.attention(k), f_.attention);
  }
  Cost memory_bound(const MemoryBound& k) const override {
    return times(costs_.memory_bound(k),
                 k.op == MemoryOp::optimizer ? f_.optimizer : f_.memory_bound);
  }
  Cost chunked_scan(const ChunkedScan& k) const override {
    return times(costs_.chunked_scan(k), f_.attention);
  }
  Cost collective(const Collective& k) const override {
    return times(costs_.collective(k),
                 k.group.nodes > 1 ? f_.collectives_across_nodes : f_.collectives_in_node);
  }
  Cost point_to_point(const PointToPoint& k) const override {
    return times(costs_.point_to_point(k), f_.point_to_point);
  }
  Cost token_exchange(const TokenExchange& k) const override {
    return times(costs_.token_exchange(k),
                 k.group.nodes > 1 ? f_.collectives_across_nodes : f_.collectives_in_node);
  }
  double gemm_slowdown_beside_collective() const override {
    return costs_.gemm_slowdown_beside_collective();
  }
  double slowdown_beside_exchange(int sms) const override {
    return costs_.slowdown_beside_exchange(sms);
  }
  FlopsPerSecond peak(NumberFormat format) const override { return costs_.peak(format); }

 private:
  static Cost times(Cost cost, double factor) {
    cost.time = cost.time * factor;
    return cost;
  }

  const KernelCosts& costs_;
  CostFactors f_;
};

}  // namespace mllmsim::costs
