#include "cost_models/layers/pointwise_kernels.hpp"

#include <array>

namespace mllmsim::costs {
namespace {

// Hugging Face's RMSNorm, operator by operator.
constexpr std::array<std::int64_t, 6> kEagerRmsForward = {
    2 + 4,  // to fp32
    4 + 4,  // square
    4,      // mean over the row
    4 + 4,  // times 1/rms
    4 + 2,  // to bf16
    2 + 2,  // times weight
};
constexpr std::array<std::int64_t, 8> kEagerRmsBackward = {
    2 + 2,      // gradient times weight
    2 + 4,      // to fp32
    4 + 4,      // times 1/rms
    4 + 4 + 4,  // times x, for the gradient of 1/rms ...
    4,          // ... summed over the row
    4 + 4,      // back through the mean of squares
    4 + 4 + 4,  // sum of the two paths
    4 + 2,      // to bf16
};
// Gradient of a scale vector.
constexpr std::array<std::int64_t, 2> kProductAndSum = {2 + 2 + 2, 2};

constexpr std::array<std::int64_t, 5> kEagerRotary = {
    1 + 1,      // negate one half
    2 + 2,      // concatenate the swapped halves
    2 + 2,      // times cos
    2 + 2,      // times sin
    2 + 2 + 2,  // sum
};

constexpr std::array<std::int64_t, 2> kEagerSwiglu = {2 + 2, 2 + 2 + 2};  // silu(gate), times up
constexpr std::array<std::int64_t, 4> kEagerSwigluBackward = {
    2 + 2 + 2,  // gradient of up
    2 + 2 + 2,  // gradient of silu(gate)
    2 + 2 + 2,  // gradient of gate
    4 + 4,      // both halves into one tensor
};

// Layer scale and drop path sit between bias and residual, so nothing fuses across them.
bool fused_residual(const LayerSetting& s, const Transformer& t) {
  return s.software.fused_kernels && !t.layer_scale && !t.drop_path;
}

}  // namespace

void norm_forward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                  std::int64_t width) {
  // PyTorch's own LayerNorm is a single kernel even in eager mode.
  if (s.software.fused_norms || norm == Norm::layer_norm)
    list.memory("norm", MemoryOp::norm, rows, width, 2 + 2);
  else
    list.elementwise("norm", rows * width, kEagerRmsForward);
}

void norm_backward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                   std::int64_t width) {
  if (s.software.fused_norms) {
    list.memory("norm backward", MemoryOp::norm_backward, rows, width, 2 + 2 + 2);
  } else if (norm == Norm::layer_norm) {
    list.memory("norm backward", MemoryOp::norm_backward, rows, width, 2 + 2 + 2);
    if (s.trained) list.elementwise("norm weight gradient", rows * width, 2 + 2);
  } else {
    if (s.trained) list.elementwise("norm weight gradient", rows * width, kProductAndSum);
    list.elementwise("norm backward", rows * width, kEagerRmsBackward);
  }
}

void bias_forward(KernelList& list, std::int64_t values) {
  list.elementwise("bias", values, 2 + 2);
}

void bias_backward(KernelList& list, const LayerSetting& s, std::int64_t values) {
  if (s.trained) list.elementwise("bias gradient", values, 2);
}

void residual_forward(KernelList& list, const LayerSetting& s, const Transformer& t,
                      std::int64_t rows) {
  const std::int64_t values = rows * t.hidden_size;
  if (fused_residual(s, t)) {
    list.elementwise("bias dropout residual", values, 2 + 2 + 2 + (s.software.dropout ? 1 : 0));
    return;
  }
  if (t.linear_bias) bias_forward(list, values);
  if (s.software.dropout) list.elementwise("dropout", values, 2 + 2 + 1);
  if (t.layer_scale) list.elementwise("layer scale", values, 2 + 2);
  if (t.drop_path) list.elementwise("drop path", values, 2 + 2);
  list.elementwise("residual", values, 2 + 2 + 2);
}

void residual_backward(KernelList& list, const LayerSetting& s, const Transformer& t,
                       std::int64_t rows) {
  const std::int64_t values = rows * t.hidden_size;
  if (t.drop_path) list.elementwise("drop path backward", values, 2 + 2);
  if (t.layer_scale) {
    list.elementwise("layer scale backward", values, 2 + 2);
    if (s.trained) list.elementwise("layer scale gradient", values, kProductAndSum);
  }
  if (s.software.dropout) list.elementwise("dropout backward", values, 2 + 2 + 1);
  if (t.linear_bias) bias_backward(list, s, values);
}

void fork_backward(KernelList& list, const Transformer& t, std::int64_t rows) {
  list.elementwise("residual gradient", rows * t.hidden_size, 2 + 2 + 2);
}

void activation_forward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                        std::int64_t values) {
  const std::int64_t inputs = gated ? 2 : 1;
  if (bias && !s.software.fused_kernels) bias_forward(list, inputs * values);
  if (!gated)
    list.elementwise("gelu", values, 2 + 2);
  else if (s.software.fused_kernels)
    list.elementwise("swiglu", values, 2 + 2 + 2);
  else
    list.elementwise("swiglu", values, kEagerSwiglu);
}

void activation_backward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                         std::int64_t values) {
  if (!gated)
    list.elementwise("gelu backward", values, 2 + 2 + 2);
  else if (s.software.fused_kernels)
    list.elementwise("swiglu backward", values, 3 * 2 + 2 * 2);
  else
    list.elementwise("swiglu backward", values, kEagerSwigluBackward);
  if (bias) bias_backward(list, s, (gated ? 2 : 1) * values);
}

void rotary(KernelList& list, const LayerSetting& s, std::int64_t values) {
  if (s.software.fused_kernels)
    list.elementwise("rotary", values, 2 + 2);
  else
    list.elementwise("rotary", values, kEagerRotary);
}

}  // namespace mllmsim::costs
