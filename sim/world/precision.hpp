// Bytes per number in mixed-precision training: 16-bit parameters, activations and gradients, with
// fp32 main gradients, master weights and Adam moments (Micikevicius et al., ICLR 2018).
//
// Parameters and activations are not for a scenario to change: kernels are calibrated in bf16, so
// another size needs another calibration. What a step keeps and sends of gradients and optimizer
// differs between frameworks (software.* of scenarios).
#pragma once

#include <cstdint>

namespace mllmsim {

// Bytes of one value.
inline constexpr std::int64_t kFp32 = 4;
inline constexpr std::int64_t kBf16 = 2;   // or fp16
inline constexpr std::int64_t kMask = 1;   // of dropout or attention
inline constexpr std::int64_t kInt64 = 8;  // of token ids

struct Precision {
  int parameter_bytes = 2;   // bf16 or fp16, in memory and when gathered
  int activation_bytes = 2;  // the same; also gradients of activations
  // Main gradients, which micro-batches add up in and replicas reduce: fp32, or fp16.
  int grad_bytes_per_parameter = 4;
  // zero_stage 3: gradients of one micro-batch as they are reduced (FSDP's reduce_dtype,
  // DeepSpeed's communication_data_type).
  int sharded_grad_bytes_per_parameter = 2;
  int optimizer_bytes_per_parameter = 12;  // fp32 master weights and two Adam moments
};

}  // namespace mllmsim
