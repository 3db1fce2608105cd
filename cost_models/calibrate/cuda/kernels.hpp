// The hand-written kernels as functions for host code: everything nvcc has to compile is behind
// these. All are asynchronous on `stream`; errors show at the next check (cuda.hpp).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "cost_models/calibrate/cuda/attention_arguments.hpp"

namespace mllmsim::calibrate::cuda {

using bf16 = __nv_bfloat16;

void launch_empty(cudaStream_t stream);

void fill_normal(bf16* x, long n, cudaStream_t stream);
void fill_normal(float* x, long n, cudaStream_t stream);
void fill_indices(int* x, long n, int limit, cudaStream_t stream);  // below limit, scattered

void add(const bf16* a, const bf16* b, bf16* c, long n, cudaStream_t stream);
void gelu(const bf16* a, bf16* c, long n, cudaStream_t stream);

struct NormArguments {
  const bf16 *x = nullptr, *weight = nullptr, *dy = nullptr;
  bf16* y = nullptr;  // forward: the result; backward: the gradient of x
  float *inverse_rms = nullptr, *dweight = nullptr;
  int rows = 0, row_length = 0;
};
void norm(const NormArguments& a, cudaStream_t stream);
void norm_backward(const NormArguments& a, cudaStream_t stream);

// labels may be null: softmax; otherwise the gradient of cross entropy.
void softmax(const bf16* x, bf16* y, const int* labels, int rows, int row_length,
             cudaStream_t stream);
void gather(const bf16* table, const int* indices, bf16* out, int rows, int row_length,
            cudaStream_t stream);

struct AdamArguments {
  const float* gradient = nullptr;
  float *weight = nullptr, *first = nullptr, *second = nullptr;
  bf16* copy = nullptr;
};
void adam(const AdamArguments& a, long n, cudaStream_t stream);

// head_dim 64, 80 or 128.
void attention_forward(const AttentionArguments& a, cudaStream_t stream);
void attention_backward(const AttentionArguments& a, cudaStream_t stream);

}  // namespace mllmsim::calibrate::cuda
