// What data sheets say of GPUs. Efficiencies of a calibration are relative to these.
#pragma once

#include <string_view>

#include "sim/units.hpp"

namespace mllmsim {

struct Gpu {
  FlopsPerSecond peak{};  // dense bf16
  BytesPerSecond memory_bandwidth{};
  BytesPerSecond nvlink_bandwidth{};  // per direction
  int sms = 0;
};

// By the name CUDA reports, or any text containing it. Throws UserError listing the known ones.
Gpu gpu_of(std::string_view name);

}  // namespace mllmsim
