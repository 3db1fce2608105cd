// Memory-bound kernels: one block per row for those that reduce over a row, a grid-stride loop for
// the rest; 16-byte accesses, fp32 arithmetic. Row lengths and counts are multiples of eight.
#pragma once

#include "cost_models/calibrate/cuda/device.cuh"

namespace mllmsim::calibrate::cuda {

__device__ inline long first_index() {
  return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline long index_stride() { return static_cast<long>(gridDim.x) * blockDim.x; }

__global__ void empty_kernel() {}

// splitmix64, then Box and Muller. Real activations are spread like this; constants would draw less
// power and let the clock rise.
__device__ inline float normal_number(unsigned long long i) {
  unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const float u = (static_cast<float>(z >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(z & 0xffffff) * 0x1p-24f;
  return sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
}

__global__ void fill_bf16_kernel(bf16* x, long n) {
  for (long i = first_index(); i < n; i += index_stride()) x[i] = to_bf16(normal_number(i));
}

__global__ void fill_float_kernel(float* x, long n) {
  for (long i = first_index(); i < n; i += index_stride()) x[i] = normal_number(i);
}

__global__ void fill_index_kernel(int* x, long n, int limit) {
  for (long i = first_index(); i < n; i += index_stride())
    x[i] = static_cast<int>(((i + 1) * 2654435761ull >> 7) % limit);
}

__global__ void add_kernel(const Pack* a, const Pack* b, Pack* c, long packs) {
  for (long i = first_index(); i < packs; i += index_stride()) {
    const Pack x = a[i], y = b[i];
    Pack sum;
    for (int j = 0; j < kPack; ++j)
      sum.values[j] = to_bf16(to_float(x.values[j]) + to_float(y.values[j]));
    c[i] = sum;
  }
}

__global__ void gelu_kernel(const Pack* a, Pack* c, long packs) {
  for (long i = first_index(); i < packs; i += index_stride()) {
    const Pack in = a[i];
    Pack out;
    for (int j = 0; j < kPack; ++j) {
      const float x = to_float(in.values[j]);
      out.values[j] = to_bf16(0.5f * x * (1.0f + tanhf(0.7978846f * (x + 0.044715f * x * x * x))));
    }
    c[i] = out;
  }
}

// y = x / rms(x) * weight; keeps 1 / rms for the backward pass.
__global__ void norm_kernel(const Pack* x, const bf16* weight, Pack* y, float* inverse_rms,
                            int packs) {
  const Pack* row = x + static_cast<long>(blockIdx.x) * packs;
  float squares = 0;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack p = row[i];
    for (int j = 0; j < kPack; ++j) squares += to_float(p.values[j]) * to_float(p.values[j]);
  }
  const float r = rsqrtf(block_reduce<Sum>(squares) / (packs * kPack) + 1e-6f);
  if (threadIdx.x == 0) inverse_rms[blockIdx.x] = r;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack p = row[i];
    Pack out;
    for (int j = 0; j < kPack; ++j)
      out.values[j] = to_bf16(to_float(p.values[j]) * r * to_float(weight[i * kPack + j]));
    y[static_cast<long>(blockIdx.x) * packs + i] = out;
  }
}

// dx = r (g - x r^2 mean(x g)) with g = dy weight.
__global__ void norm_backward_kernel(const Pack* x, const Pack* dy, const bf16* weight,
                                     const float* inverse_rms, Pack* dx, int packs) {
  const long row = static_cast<long>(blockIdx.x) * packs;
  float dot = 0;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack a = x[row + i], b = dy[row + i];
    for (int j = 0; j < kPack; ++j)
      dot += to_float(a.values[j]) * to_float(b.values[j]) * to_float(weight[i * kPack + j]);
  }
  const float r = inverse_rms[blockIdx.x];
  const float mean = block_reduce<Sum>(dot) / (packs * kPack);
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack a = x[row + i], b = dy[row + i];
    Pack out;
    for (int j = 0; j < kPack; ++j) {
      const float g = to_float(b.values[j]) * to_float(weight[i * kPack + j]);
      out.values[j] = to_bf16(r * (g - to_float(a.values[j]) * r * r * mean));
    }
    dx[row + i] = out;
  }
}

// dweight[c] += sum over rows of dy x r: one thread per column, blockIdx.y is a share of the rows.
__global__ void norm_weight_gradient_kernel(const bf16* x, const bf16* dy, const float* inverse_rms,
                                            float* dweight, int rows, int row_length) {
  const int column = static_cast<int>(first_index());
  if (column >= row_length) return;
  float sum = 0;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const long at = static_cast<long>(row) * row_length + column;
    sum += to_float(dy[at]) * to_float(x[at]) * inverse_rms[row];
  }
  atomicAdd(&dweight[column], sum);
}

// y = softmax(x), minus one at labels[row] if there are labels: the gradient of cross entropy.
__global__ void softmax_kernel(const Pack* x, Pack* y, const int* labels, int packs) {
  const long row = static_cast<long>(blockIdx.x) * packs;
  float largest = Max::kNeutral, sum = 0;  // of this thread so far, sum relative to largest
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack p = x[row + i];
    for (int j = 0; j < kPack; ++j) {
      const float value = to_float(p.values[j]);
      if (value > largest) {
        sum *= __expf(largest - value);
        largest = value;
      }
      sum += __expf(value - largest);
    }
  }
  const float peak = block_reduce<Max>(largest);
  const float scale = 1.0f / block_reduce<Sum>(sum * __expf(largest - peak));
  const int label = labels ? labels[blockIdx.x] : -1;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack p = x[row + i];
    Pack out;
    for (int j = 0; j < kPack; ++j) {
      const float probability = __expf(to_float(p.values[j]) - peak) * scale;
      out.values[j] = to_bf16(i * kPack + j == label ? probability - 1.0f : probability);
    }
    y[row + i] = out;
  }
}

__global__ void gather_kernel(const Pack* table, const int* indices, Pack* out, int packs) {
  const Pack* from = table + static_cast<long>(indices[blockIdx.x]) * packs;
  Pack* to = out + static_cast<long>(blockIdx.x) * packs;
  for (int i = threadIdx.x; i < packs; i += blockDim.x) to[i] = from[i];
}

struct AdamState {
  const float* gradient;
  float *weight, *first, *second;
  bf16* copy;
};

__global__ void adam_kernel(AdamState s, long n) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.95f, kRate = 1e-4f;
  for (long i = first_index(); i < n; i += index_stride()) {
    const float g = s.gradient[i];
    const float m = s.first[i] = kBeta1 * s.first[i] + (1 - kBeta1) * g;
    const float v = s.second[i] = kBeta2 * s.second[i] + (1 - kBeta2) * g * g;
    const float w = s.weight[i] = s.weight[i] - kRate * m / (sqrtf(v) + 1e-8f);
    s.copy[i] = to_bf16(w);
  }
}

}  // namespace mllmsim::calibrate::cuda
