// The measured kernels on a CPU, in float32: enough to try the whole program on any machine, and
// real measurements of that machine. One core; Eigen for products. Row-major as on the GPU.
#pragma once

#include <functional>

#include "cost_models/calibrate/task.hpp"

namespace mllmsim::calibrate::host {

using Kernel = std::function<void()>;  // owns its inputs, filled with normal random numbers

Kernel gemm_kernel(const costs::Gemm& gemm);
Kernel attention_kernel(const AttentionTask& task);
Kernel memory_kernel(const MemoryTask& task);
Kernel copy_kernel(const CopyTask& task);

}  // namespace mllmsim::calibrate::host
