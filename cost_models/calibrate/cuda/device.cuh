// What the kernels share: bf16 in packs of eight, reductions, dynamic shared memory.
//
// Kernels use only what tests/cost_models/calibrate/cuda_emulation.hpp can stand in for (no static
// __shared__, shuffles by xor, WMMA through memory): their arithmetic is tested on machines without
// a GPU.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#define MLLMSIM_UNROLL _Pragma("unroll")
#else
#define MLLMSIM_UNROLL
#endif

namespace mllmsim::calibrate::cuda {

using bf16 = __nv_bfloat16;

extern __shared__ __align__(128) unsigned char shared_memory[];

constexpr int kPack = 8;  // bf16 in one 16-byte access
struct alignas(16) Pack {
  bf16 values[kPack];
};

__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline bf16 to_bf16(float x) { return __float2bfloat16(x); }

struct Sum {
  static constexpr float kNeutral = 0;
  __device__ static float combine(float a, float b) { return a + b; }
};
struct Max {
  static constexpr float kNeutral = -3.0e38f;
  __device__ static float combine(float a, float b) { return a > b ? a : b; }
};

template <class Op>
__device__ float warp_reduce(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// Over all threads of a block of whole warps; every thread gets the result.
template <class Op>
__device__ float block_reduce(float value) {
  float* partial = reinterpret_cast<float*>(shared_memory);
  value = warp_reduce<Op>(value);
  __syncthreads();  // the previous reduction has been read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = Op::kNeutral;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) value = Op::combine(value, partial[warp]);
  return value;
}

}  // namespace mllmsim::calibrate::cuda
