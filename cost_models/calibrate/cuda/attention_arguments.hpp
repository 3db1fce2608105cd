// One launch of attention over packed sequences of any lengths.
#pragma once

struct __nv_bfloat16;

namespace mllmsim::calibrate::cuda {

// Tensors are [tokens, heads, head_dim], those of keys and values [tokens, kv_heads, head_dim], and
// sequence i is tokens offsets[i] to offsets[i + 1]. The backward pass reads what forward wrote.
struct AttentionArguments {
  const __nv_bfloat16 *q = nullptr, *k = nullptr, *v = nullptr;
  __nv_bfloat16* output = nullptr;
  float* log_sum = nullptr;  // [tokens, heads]: log of the softmax denominator
  const __nv_bfloat16* output_gradient = nullptr;
  __nv_bfloat16 *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float* dq_sum = nullptr;  // [tokens, heads, head_dim]: dq before rounding
  float* delta = nullptr;   // [tokens, heads]: output . output_gradient
  const int* offsets = nullptr;
  int sequences = 0, longest = 0, tokens = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;
};

}  // namespace mllmsim::calibrate::cuda
