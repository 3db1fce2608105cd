// KernelCosts that answer from a calibration and the cluster's bandwidths.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/cluster.hpp"

namespace mllmsim::costs {

struct Calibration;

// Reads a calibration file (JSON, cost_models/calibrations/). Throws UserError naming the file and
// what is wrong in it.
std::unique_ptr<KernelCosts> read_kernel_costs(const std::filesystem::path& calibration,
                                               const ClusterSpec& cluster);

// From a calibration read before, which must outlive it.
std::unique_ptr<KernelCosts> kernel_costs(const Calibration& calibration,
                                          const ClusterSpec& cluster);

// A large product that is faster than the peak of its format: such a calibration is refused.
struct AbovePeak {
  NumberFormat format = NumberFormat::bf16;
  const char* key = "";  // of the peak
  FlopsPerSecond reached{}, peak{};
};
std::optional<AbovePeak> above_peak(const Calibration& calibration);

// In what suits it: 185 GFLOP/s of a core, 989.4 TFLOP/s of a GPU.
std::string rate_text(FlopsPerSecond rate);

}  // namespace mllmsim::costs
