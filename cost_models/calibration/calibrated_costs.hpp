// KernelCosts that answer from a calibration and the cluster's bandwidths.
#pragma once

#include <filesystem>
#include <memory>

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

}  // namespace mllmsim::costs
