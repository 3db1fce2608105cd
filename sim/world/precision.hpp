// Bytes per number in mixed-precision training: 16-bit parameters, activations and gradients, with
// fp32 main gradients, master weights and Adam moments (Micikevicius et al., ICLR 2018).
//
// The format says what matrix products multiply. Formats below 16 bits are Transformer Engine's:
// activations, weights and gradients of a linear layer are quantised before each product, products
// accumulate in fp32 and results are bf16 again. What a step keeps and sends of gradients and
// optimizer differs between frameworks (software.* of scenarios).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/enum_names.hpp"

namespace mllmsim {

enum class NumberFormat : std::uint8_t {
  bf16,
  fp16,
  fp32,       // everything is: parameters, activations, gradients, all products
  fp8,        // one scale per tensor (delayed or current scaling)
  fp8_block,  // fp32 scales of 1 x 128 activations and 128 x 128 weights
  mxfp8,      // a power of two for each 32 values
  nvfp4,      // an fp8 scale for each 16 values, and one per tensor
};
template <>
struct Names<NumberFormat> {
  static constexpr std::array<std::string_view, 7> list{"bf16",      "fp16",  "fp32", "fp8",
                                                        "fp8_block", "mxfp8", "nvfp4"};
};

constexpr bool is_quantised(NumberFormat format) { return format >= NumberFormat::fp8; }
// Whether quantising a tensor takes a pass over it first.
constexpr bool needs_amax_pass(NumberFormat format, bool current_scaling) {
  return format == NumberFormat::nvfp4 || (format == NumberFormat::fp8 && current_scaling);
}
// Of one value, its share of scales included.
constexpr double bytes_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::bf16:
    case NumberFormat::fp16:
      return 2;
    case NumberFormat::fp32:
      return 4;
    case NumberFormat::fp8:
      return 1;
    case NumberFormat::fp8_block:
      return 1 + 4. / 128;
    case NumberFormat::mxfp8:
      return 1 + 1. / 32;
    case NumberFormat::nvfp4:
      return 0.5 + 1. / 16;
  }
  return 2;
}

// What a kernel reads and writes, or a layer keeps, for each value: so many numbers in the
// precision of activations, and so many bytes besides. A cast between that precision and fp32 is no
// work where they are the same.
struct Traffic {
  double activations = 0;
  std::int64_t bytes = 0;
  bool cast = false;

  constexpr Traffic() = default;
  constexpr Traffic(std::int64_t fixed) : bytes(fixed) {}  // NOLINT: bytes are a traffic
  constexpr Traffic(double numbers, std::int64_t fixed) : activations(numbers), bytes(fixed) {}

  constexpr std::int64_t of(std::int64_t values, std::int64_t activation_bytes) const {
    return values * bytes + static_cast<std::int64_t>(static_cast<double>(values) * activations *
                                                      static_cast<double>(activation_bytes));
  }
};
constexpr Traffic operator+(Traffic a, Traffic b) {
  return {a.activations + b.activations, a.bytes + b.bytes};
}
constexpr Traffic operator*(std::int64_t n, Traffic t) {
  return {static_cast<double>(n) * t.activations, n * t.bytes};
}
constexpr Traffic operator/(Traffic t, std::int64_t n) {
  return {t.activations / static_cast<double>(n), t.bytes / n};
}
constexpr Traffic as_cast(Traffic t) {
  t.cast = true;
  return t;
}

// Bytes of one value.
inline constexpr std::int64_t kFp32 = 4;
inline constexpr std::int64_t kHalf = 2;   // bf16 or fp16, whatever activations are
inline constexpr Traffic kBf16{1., 0};     // an activation: 2 bytes unless a run trains in fp32
inline constexpr std::int64_t kMask = 1;   // of dropout or attention
inline constexpr std::int64_t kInt64 = 8;  // of token ids

struct Precision {
  NumberFormat format = NumberFormat::bf16;  // of the products of the LLM's blocks
  // fp8: a tensor's largest value is found by a pass over it before it is quantised (Megatron's
  // --fp8-recipe tensorwise); otherwise the scale follows from earlier steps (delayed).
  bool fp8_current_scaling = false;
  // Quantised parameters are gathered and kept (Megatron's --fp8-param-gather); otherwise bf16,
  // with quantised copies beside them.
  bool fp8_param_gather = false;
  int parameter_bytes = 2;   // bf16 or fp16, in memory and when gathered
  int activation_bytes = 2;  // the same; also gradients of activations
  // Main gradients, which micro-batches add up in and replicas reduce: fp32, or fp16.
  int grad_bytes_per_parameter = 4;
  // zero_stage 3: gradients of one micro-batch as they are reduced (FSDP's reduce_dtype,
  // DeepSpeed's communication_data_type).
  int sharded_grad_bytes_per_parameter = 2;
  int optimizer_bytes_per_parameter = 12;  // fp32 master weights and two Adam moments

  // Of products that are not quantised.
  NumberFormat plain_format() const { return is_quantised(format) ? NumberFormat::bf16 : format; }

  bool operator==(const Precision&) const = default;
};

}  // namespace mllmsim
