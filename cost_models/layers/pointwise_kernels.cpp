#include "cost_models/layers/pointwise_kernels.hpp"

#include <array>
#include <span>
#include <vector>

namespace mllmsim::costs {
namespace {

// Hugging Face's RMSNorm, operator by operator.
constexpr std::array<Traffic, 6> kEagerRmsForward = {
    as_cast(kBf16 + kFp32),  // to fp32
    kFp32 + kFp32,           // square
    kFp32,                   // mean over the row
    kFp32 + kFp32,           // times 1/rms
    as_cast(kFp32 + kBf16),  // to bf16
    kBf16 + kBf16,           // times weight
};
constexpr std::array<Traffic, 8> kEagerRmsBackward = {
    kBf16 + kBf16,           // gradient times weight
    as_cast(kBf16 + kFp32),  // to fp32
    kFp32 + kFp32,           // times 1/rms
    kFp32 + kFp32 + kFp32,   // times x, for the gradient of 1/rms ...
    kFp32,                   // ... summed over the row
    kFp32 + kFp32,           // back through the mean of squares
    kFp32 + kFp32 + kFp32,   // sum of the two paths
    as_cast(kFp32 + kBf16),  // to bf16
};
// Gradient of a scale vector.
constexpr std::array<Traffic, 2> kProductAndSum = {kBf16 + kBf16 + kBf16, kBf16};

constexpr std::array<Traffic, 5> kEagerRotary = {
    kBf16,                  // negate one half
    kBf16 + kBf16,          // concatenate the swapped halves
    kBf16 + kBf16,          // times cos
    kBf16 + kBf16,          // times sin
    kBf16 + kBf16 + kBf16,  // sum
};

// Cosine or sine of the angles.
constexpr std::array<Traffic, 3> kTurn = {kFp32 + kFp32, kFp32 + kFp32,  // scaled
                                          kFp32 + kBf16};

constexpr std::array<Traffic, 2> kEagerSwiglu = {kBf16 + kBf16,
                                                 kBf16 + kBf16 + kBf16};  // silu(gate), times up
constexpr std::array<Traffic, 4> kEagerSwigluBackward = {
    kBf16 + kBf16 + kBf16,  // gradient of up
    kBf16 + kBf16 + kBf16,  // gradient of silu(gate)
    kBf16 + kBf16 + kBf16,  // gradient of gate
    2 * (kBf16 + kBf16),    // both halves into one tensor
};

// Layer scale, gates and drop path sit between bias and residual, so nothing fuses across them.
bool fused_residual(const LayerSetting& s, const Transformer& t) {
  return s.software.fused_kernels && !t.layer_scale && !t.gated_branches && !t.drop_path;
}

}  // namespace

void norm_forward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                  std::int64_t width) {
  // PyTorch's own LayerNorm is a single kernel even in eager mode.
  if (s.software.fused_norms || norm == Norm::layer_norm)
    list.memory("norm", MemoryOp::norm, rows, width, kBf16 + kBf16);
  else
    list.elementwise("norm", rows * width, kEagerRmsForward);
}

void norm_backward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                   std::int64_t width) {
  if (s.software.fused_norms) {
    list.memory("norm backward", MemoryOp::norm_backward, rows, width, kBf16 + kBf16 + kBf16);
  } else if (norm == Norm::layer_norm) {
    list.memory("norm backward", MemoryOp::norm_backward, rows, width, kBf16 + kBf16 + kBf16);
    if (s.trained) list.elementwise("norm weight gradient", rows * width, kBf16 + kBf16);
  } else {
    if (s.trained) list.elementwise("norm weight gradient", rows * width, kProductAndSum);
    list.elementwise("norm backward", rows * width, kEagerRmsBackward);
  }
}

void bias_forward(KernelList& list, std::int64_t values) {
  list.elementwise("bias", values, kBf16 + kBf16);
}

void bias_backward(KernelList& list, const LayerSetting& s, std::int64_t values) {
  if (s.trained) list.elementwise("bias gradient", values, kBf16);
}

void residual_forward(KernelList& list, const LayerSetting& s, const Transformer& t,
                      std::int64_t rows) {
  const std::int64_t values = rows * t.hidden_size;
  if (fused_residual(s, t)) {
    list.elementwise("bias dropout residual", values,
                     kBf16 + kBf16 + kBf16 + (s.software.dropout ? kMask : 0));
    return;
  }
  if (t.linear_bias) bias_forward(list, values);
  if (s.software.dropout) list.elementwise("dropout", values, kBf16 + kBf16 + kMask);
  if (t.layer_scale) list.elementwise("layer scale", values, kBf16 + kBf16);
  if (t.gated_branches) list.elementwise("gate", values, kBf16 + kBf16);
  if (t.drop_path) list.elementwise("drop path", values, kBf16 + kBf16);
  list.elementwise("residual", values, kBf16 + kBf16 + kBf16);
}

void residual_backward(KernelList& list, const LayerSetting& s, const Transformer& t,
                       std::int64_t rows) {
  const std::int64_t values = rows * t.hidden_size;
  if (t.drop_path) list.elementwise("drop path backward", values, kBf16 + kBf16);
  if (t.gated_branches) {
    list.elementwise("gate backward", values, kBf16 + kBf16);
    if (s.trained) list.elementwise("gate gradient", values, kProductAndSum);
  }
  if (t.layer_scale) {
    list.elementwise("layer scale backward", values, kBf16 + kBf16);
    if (s.trained) list.elementwise("layer scale gradient", values, kProductAndSum);
  }
  if (s.software.dropout) list.elementwise("dropout backward", values, kBf16 + kBf16 + kMask);
  if (t.linear_bias) bias_backward(list, s, values);
}

void fork_backward(KernelList& list, const Transformer& t, std::int64_t rows) {
  list.elementwise("residual gradient", rows * t.hidden_size, kBf16 + kBf16 + kBf16);
}

void activation_forward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                        std::int64_t values) {
  const std::int64_t inputs = gated ? 2 : 1;
  if (bias && !s.software.fused_kernels) bias_forward(list, inputs * values);
  if (!gated)
    list.activation("gelu", values, kBf16 + kBf16, false);
  else if (s.software.fused_kernels)
    list.activation("swiglu", values, kBf16 + kBf16 + kBf16, false);
  else
    list.elementwise("swiglu", values, kEagerSwiglu);
}

void activation_backward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                         std::int64_t values) {
  if (!gated)
    list.activation("gelu backward", values, kBf16 + kBf16 + kBf16, true);
  else if (s.software.fused_kernels)
    list.activation("swiglu backward", values, 3 * kBf16 + 2 * kBf16, true);
  else
    list.elementwise("swiglu backward", values,
                     std::span(kEagerSwigluBackward).first(s.software.joint_gate_up ? 4 : 3));
  if (bias) bias_backward(list, s, (gated ? 2 : 1) * values);
}

namespace {

// One sample of q or k in Megatron-Core's _apply_rotary_pos_emb_thd until 17 August 2026, operator
// by operator. Before, the CPU reads how long the samples are, for which it waits.
void rotate_sample_by_sample(KernelList& list, const LayerSetting& s, std::int64_t values,
                             std::int64_t angles, bool interleaved) {
  using Kernel = KernelList::PartKernel;
  std::vector<Kernel> kernels;
  if (interleaved) kernels.push_back({values, kBf16 + kBf16});  // halves joined
  for (int i = 0; i < 2; ++i)                                   // cosine, then sine
    for (const Traffic bytes : kTurn) kernels.push_back({angles, bytes});
  for (const Traffic bytes : kEagerRotary) kernels.push_back({values, bytes});
  kernels.push_back({values, kBf16 + kBf16});  // joined with what is not turned
  kernels.push_back({values, kBf16 + kBf16});  // into its place
  list.wait_for_counts();
  list.for_each_part("rotary", s.rotated_apart, kernels);
}

// The same backward. A part written into its place hands on a copy of the whole gradient.
void rotate_back_sample_by_sample(KernelList& list, const LayerSetting& s, std::int64_t all,
                                  std::int64_t values, bool interleaved) {
  using Kernel = KernelList::PartKernel;
  std::vector<Kernel> kernels = {
      {all, kBf16 + kBf16},             // the gradient of all samples copied,
      {values, kBf16 + kBf16},          // of this one,
      {values, kBf16},                  // zeros where it was,
      {values, kBf16 + kBf16},          // written there
      {values, kBf16 + kBf16},          // times sin
      {values, kBf16 + kBf16},          // times cos
      {values, kBf16},                  // negate one half
      {values, kBf16 + kBf16},          // join swapped halves
      {values, kBf16 + kBf16 + kBf16},  // sum
      {values, kBf16},                  // zeros of what is not turned,
      {values, kBf16 + kBf16 + kBf16},  // added
  };
  if (interleaved)
    for (int half = 0; half < 2; ++half) {
      kernels.push_back({values, kBf16});                                 // zeros,
      kernels.push_back({values, kBf16});                                 // every second value,
      if (half == 1) kernels.push_back({values, kBf16 + kBf16 + kBf16});  // sum of both
    }
  list.for_each_part("rotary", s.rotated_apart, kernels);
  list.elementwise("rotary", all, kBf16 + kBf16);  // samples joined
}

}  // namespace

void rotary(KernelList& list, const LayerSetting& s, const Rotary& r, bool backward) {
  if (s.rotated_apart > 0) {
    const std::int64_t tokens = ceil_div(r.tokens, s.rotated_apart);
    for (const std::int64_t width : {r.query, r.key}) {
      if (backward)
        rotate_back_sample_by_sample(list, s, r.tokens * width, tokens * width, r.interleaved);
      else
        rotate_sample_by_sample(list, s, tokens * width, tokens * r.head_dim, r.interleaved);
    }
    return;
  }
  const std::int64_t values = r.tokens * (r.query + r.key);
  if (s.software.fused_kernels)
    list.elementwise("rotary", values, kBf16 + kBf16);
  else
    list.elementwise("rotary", values, kEagerRotary);
}

}  // namespace mllmsim::costs
