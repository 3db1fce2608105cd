// Enough of CUDA's device language on a CPU to test the arithmetic of our kernels without a GPU: a
// thread is a thread, a block runs after the other, __syncthreads is a barrier.
//
// A lane of a WMMA fragment holds what it needs for its eight elements of the result; no operation
// synchronises a warp by itself, so the thread sanitizer sees every __syncwarp that is missing.
// What is checked: indexing, masks, tails, synchronisation. What is not: speed, bank conflicts,
// alignment rules of the hardware.
#pragma once

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __global__ inline
#define __device__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline thread_local Dim3 threadIdx, blockIdx;
inline thread_local Dim3 blockDim, gridDim;

// The upper half of a float, rounded to nearest even.
struct __nv_bfloat16 {
  std::uint16_t bits = 0;
};
inline float __bfloat162float(__nv_bfloat16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline __nv_bfloat16 __float2bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + ((bits >> 16) & 1);
  return {static_cast<std::uint16_t>(bits >> 16)};
}
inline float __expf(float x) { return std::exp(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline void atomicAdd(float* to, float value) { std::atomic_ref<float>(*to).fetch_add(value); }

namespace emulation {

struct Block {
  explicit Block(int threads) : all(threads) {
    for (int warp = 0; warp < threads / 32; ++warp)
      warps.push_back(std::make_unique<std::barrier<>>(32));
    exchange.resize(static_cast<std::size_t>(threads));
  }
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<float> exchange;
};
inline Block* block = nullptr;

inline void sync_warp() { block->warps[threadIdx.x / 32]->arrive_and_wait(); }

// kernel<<<grid, threads>>>(arguments...), one block after the other; threads: whole warps.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), Dim3 grid, int threads, Arguments... arguments) {
  Block shared(threads);
  block = &shared;
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([=, &shared] {
      threadIdx = {static_cast<unsigned>(t), 0, 0};
      blockDim = {static_cast<unsigned>(threads), 1, 1};
      gridDim = grid;
      for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
          for (unsigned x = 0; x < grid.x; ++x) {
            blockIdx = {x, y, z};
            kernel(arguments...);
            shared.all.arrive_and_wait();
          }
    });
}

}  // namespace emulation

inline void __syncthreads() { emulation::block->all.arrive_and_wait(); }
inline void __syncwarp() { emulation::sync_warp(); }
inline float __shfl_xor_sync(unsigned, float value, int mask) {
  std::vector<float>& exchange = emulation::block->exchange;
  exchange[threadIdx.x] = value;
  emulation::sync_warp();
  const float other = exchange[threadIdx.x ^ static_cast<unsigned>(mask)];
  emulation::sync_warp();
  return other;
}

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major };

// Element i of a lane's accumulator is at row lane / 2, column 8 (lane % 2) + i. Of the factors, a
// lane holds that row of the left and those eight columns of the right.
inline int row() { return static_cast<int>(threadIdx.x % 32 / 2); }
inline int first_column() { return static_cast<int>(threadIdx.x % 2 * 8); }

template <class Use, int M, int N, int K, class T, class Layout = row_major>
struct fragment;
template <>
struct fragment<accumulator, 16, 16, 16, float> {
  static constexpr int num_elements = 8;
  float x[num_elements];
};
template <class Layout>
struct fragment<matrix_a, 16, 16, 16, __nv_bfloat16, Layout> {
  float x[16];
};
template <class Layout>
struct fragment<matrix_b, 16, 16, 16, __nv_bfloat16, Layout> {
  float x[16][8];
};
using Sum = fragment<accumulator, 16, 16, 16, float>;
template <class Layout>
using Left = fragment<matrix_a, 16, 16, 16, __nv_bfloat16, Layout>;
template <class Layout>
using Right = fragment<matrix_b, 16, 16, 16, __nv_bfloat16, Layout>;

template <class Layout>
float element(const __nv_bfloat16* from, int pitch, int r, int c) {
  constexpr bool kRows = std::is_same_v<Layout, row_major>;
  return __bfloat162float(kRows ? from[r * pitch + c] : from[c * pitch + r]);
}

inline void fill_fragment(Sum& f, float value) {
  for (float& x : f.x) x = value;
}
template <class Layout>
void load_matrix_sync(Left<Layout>& f, const __nv_bfloat16* from, int pitch) {
  for (int k = 0; k < 16; ++k) f.x[k] = element<Layout>(from, pitch, row(), k);
}
template <class Layout>
void load_matrix_sync(Right<Layout>& f, const __nv_bfloat16* from, int pitch) {
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 8; ++i) f.x[k][i] = element<Layout>(from, pitch, k, first_column() + i);
}
inline void load_matrix_sync(Sum& f, const float* from, int pitch, layout_t) {
  for (int i = 0; i < 8; ++i) f.x[i] = from[row() * pitch + first_column() + i];
}
inline void store_matrix_sync(float* to, const Sum& f, int pitch, layout_t) {
  for (int i = 0; i < 8; ++i) to[row() * pitch + first_column() + i] = f.x[i];
}
template <class LayoutA, class LayoutB>
void mma_sync(Sum& d, const Left<LayoutA>& a, const Right<LayoutB>& b, const Sum& c) {
  Sum sum = c;
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 8; ++i) sum.x[i] += a.x[k] * b.x[k][i];
  d = sum;
}

}  // namespace nvcuda::wmma
