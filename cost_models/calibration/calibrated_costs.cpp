// KernelCosts from a calibration and the cluster's bandwidths: one call to the model of each part.
// Immutable, so that simulations on several threads may share it.
//
// A calibration is of a typical GPU. Ranks of a job wait for each other within layers (tensor
// parallelism), between stages and at the end of a step, so that a job computes at the pace of its
// slowest GPU: the expected largest of as many normally distributed times (Blom's approximation).
// Power and clocks differ between chips, memory and links hardly: GEMMs and attention are slowed.
#include "cost_models/calibration/calibrated_costs.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/normal.hpp>
#include <mutex>

#include "cost_models/calibration/calibration.hpp"
#include "cost_models/calibration/estimate.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

double slowest_over_typical(const ClusterSpec& cluster) {
  const double n = cluster.gpus();
  const double largest = quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
  return 1 + cluster.gpu_speed_spread * largest;
}

Cost slowed(Cost cost, double factor) {
  cost.time = cost.time * factor;
  return cost;
}

// Products faster than the data sheet allows would show as an MFU above 100 %.
void check_peaks(const Calibration& c) {
  const std::optional<AbovePeak> found = above_peak(c);
  if (!found) return;
  throw UserError(
      "", "calibration",
      fmt::format("a GEMM of 8192 x 8192 x 8192 in {} runs at {}, above the {} of gpu.{} ({}): "
                  "MFU would be above 100 %; correct the peak, or the times (`mllmsim calibrate "
                  "scale` raises peaks with the speed of GEMMs)",
                  name_of(found->format), rate_text(found->reached), rate_text(found->peak),
                  found->key, c.header.gpu));
}

class CalibratedKernelCosts : public KernelCosts {
 public:
  CalibratedKernelCosts(const Calibration& calibration, ClusterSpec cluster)
      : c_(calibration), cluster_(std::move(cluster)), slowest_(slowest_over_typical(cluster_)) {
    check_peaks(c_);
  }

  Cost gemm(const Gemm& k) const override {
    return slowed(gemm_time(c_.gemm, c_.gpu, k), slowest_);
  }
  Cost attention(const Attention& k) const override {
    return slowed(attention_time(c_.attention, c_.gpu, k), slowest_);
  }
  Cost memory_bound(const MemoryBound& k) const override {
    return memory_bound_time(c_.memory_bound, c_.gpu, k);
  }
  Cost chunked_scan(const ChunkedScan& k) const override {
    std::call_once(recurrence_read_, [this] {
      recurrence_ = c_.recurrence ? *c_.recurrence : shipped_estimate().recurrence;
    });
    const Cost memory = memory_bound({MemoryOp::elementwise, k.bytes});
    return slowed(recurrence_time(recurrence_, c_.gpu, k, memory), slowest_);
  }
  Cost collective(const Collective& k) const override {
    return collective_time(c_.collectives, cluster_, k);
  }
  Cost point_to_point(const PointToPoint& k) const override {
    return p2p_time(c_.p2p, cluster_, k);
  }
  Cost token_exchange(const TokenExchange& x) const override {
    const auto& measured = x.hybrid ? c_.hybrid_exchange : c_.token_exchange;
    const bool network = x.hybrid && !c_.hybrid_network.empty() && x.group.nodes > 1;
    if (measured.empty() && !network) return KernelCosts::token_exchange(x);
    const Cost in_node =
        measured.empty() ? collective(node_all_to_all(x)) : exchange_time(std::span{measured}, x);
    if (x.group.nodes == 1) return in_node;
    if (network) return across_nodes(x, in_node);
    const Cost far = collective(network_all_to_all(x));
    return far.time > in_node.time ? far : in_node;
  }
  double gemm_slowdown_beside_collective() const override { return c_.overlap.value; }
  double slowdown_beside_exchange(int sms) const override {
    if (sms == 0 || sms >= c_.gpu.sms) return KernelCosts::slowdown_beside_exchange(sms);
    return static_cast<double>(c_.gpu.sms) / (c_.gpu.sms - sms);
  }
  FlopsPerSecond peak(NumberFormat format) const override { return c_.gpu.peak_of(format); }

 private:
  Cost across_nodes(const TokenExchange& x, const Cost& in_node) const {
    const BytesPerSecond each =
        network_share(cluster_, x.group).bandwidth / static_cast<double>(x.group.ranks_per_node());
    const Cost far = network_time(c_.hybrid_network, x, each);
    Cost longest = far.time > in_node.time ? far : in_node;
    longest.time += network_base(c_.hybrid_network, x);
    return longest;
  }

  const Calibration& c_;
  ClusterSpec cluster_;
  double slowest_;
  // Only models with such layers read the estimate's.
  mutable std::once_flag recurrence_read_;
  mutable RecurrenceModel recurrence_;
};

// The same with a calibration of its own. First base: made before the costs that refer to it.
struct OwnCalibration {
  Calibration calibration;
};
class OwningKernelCosts : OwnCalibration, public CalibratedKernelCosts {
 public:
  OwningKernelCosts(Calibration from, ClusterSpec cluster)
      : OwnCalibration{std::move(from)},
        CalibratedKernelCosts(OwnCalibration::calibration, std::move(cluster)) {}
};

}  // namespace

std::optional<AbovePeak> above_peak(const Calibration& c) {
  const auto reached = [&](NumberFormat format, const char* key) -> std::optional<AbovePeak> {
    Gemm large{8192, 8192, 8192};
    large.format = format;
    const FlopsPerSecond rate{large.flops().value / gemm_time(c.gemm, c.gpu, large).time.value};
    const FlopsPerSecond peak = c.gpu.peak_of(format);
    if (rate <= peak) return std::nullopt;
    return AbovePeak{format, key, rate, peak};
  };
  if (const auto found = reached(c.gpu.products_in, "peak_tflops")) return found;
  for (const QuantisedGemm& q : c.gemm.quantised)
    if (const auto found = reached(
            q.format, q.format == NumberFormat::nvfp4 ? "peak_fp4_tflops" : "peak_fp8_tflops"))
      return found;
  return std::nullopt;
}

std::string rate_text(FlopsPerSecond rate) {
  if (rate.value < 1e12) return fmt::format("{:.4g} GFLOP/s", rate.value / 1e9);
  return fmt::format("{:.4g} TFLOP/s", rate.value / 1e12);
}

std::unique_ptr<KernelCosts> read_kernel_costs(const std::filesystem::path& calibration,
                                               const ClusterSpec& cluster) {
  return std::make_unique<OwningKernelCosts>(read_calibration(calibration), cluster);
}

std::unique_ptr<KernelCosts> kernel_costs(const Calibration& calibration,
                                          const ClusterSpec& cluster) {
  return std::make_unique<CalibratedKernelCosts>(calibration, cluster);
}

}  // namespace mllmsim::costs
