// KernelCosts from a calibration and the cluster's bandwidths: one call to the model of each part.
// Immutable, so that simulations on several threads may share it.
#include "cost_models/kernel_costs.hpp"

#include "cost_models/calibrated_costs.hpp"

namespace mllmsim {
namespace {

class CalibratedKernelCosts : public KernelCosts {
 public:
  CalibratedKernelCosts(Calibration calibration, ClusterSpec cluster)
      : c_(std::move(calibration)), cluster_(std::move(cluster)) {}

  Cost gemm(const Gemm& k) const override { return gemm_time(c_.gemm, c_.gpu, k); }
  Cost attention(const Attention& k) const override {
    return attention_time(c_.attention, c_.gpu, k);
  }
  Cost memory_bound(const MemoryBound& k) const override {
    return memory_bound_time(c_.memory_bound, c_.gpu, k);
  }
  Cost collective(const Collective& k) const override {
    return collective_time(c_.collectives, cluster_, k);
  }
  Cost point_to_point(const PointToPoint& k) const override {
    return p2p_time(c_.p2p, cluster_, k);
  }
  double gemm_slowdown_beside_collective() const override { return c_.overlap.value; }
  FlopsPerSecond peak() const override { return c_.gpu.peak; }

 private:
  Calibration c_;
  ClusterSpec cluster_;
};

}  // namespace

std::unique_ptr<KernelCosts> make_kernel_costs(const Calibration& calibration,
                                               const ClusterSpec& cluster) {
  return std::make_unique<CalibratedKernelCosts>(calibration, cluster);
}

std::unique_ptr<KernelCosts> read_kernel_costs(const std::filesystem::path& calibration,
                                               const ClusterSpec& cluster) {
  return make_kernel_costs(read_calibration(calibration), cluster);
}

}  // namespace mllmsim
