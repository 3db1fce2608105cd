// What data sheets say of GPUs. Efficiencies of a calibration are relative to these.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/units.hpp"

namespace mllmsim::costs {

struct Gpu {
  FlopsPerSecond peak{};  // dense bf16
  BytesPerSecond memory_bandwidth{};
  BytesPerSecond nvlink_bandwidth{};  // per direction
  int sms = 0;
};

// By the name CUDA reports, or any text containing it.
std::optional<Gpu> find_gpu(std::string_view name);
// The same; throws UserError listing the known ones if there is none.
Gpu gpu_of(std::string_view name);

}  // namespace mllmsim::costs
