// Kernel costs from a calibration already read, for many runs that share one.
#pragma once

#include <memory>

#include "cost_models/calibration.hpp"
#include "cost_models/kernel_costs.hpp"

namespace mllmsim {

std::unique_ptr<KernelCosts> make_kernel_costs(const Calibration& calibration,
                                               const ClusterSpec& cluster);

}  // namespace mllmsim
