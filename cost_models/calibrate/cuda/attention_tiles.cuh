// Tiles of the attention kernels: 64 rows in shared memory, products on tensor cores (WMMA
// 16x16x16, bf16 in, fp32 out). A block is four warps; a warp owns 16 of the 64 rows of a result.
#pragma once

#include "cost_models/calibrate/cuda/attention_arguments.hpp"
#include "cost_models/calibrate/cuda/device.cuh"

namespace mllmsim::calibrate::cuda {

namespace wmma = nvcuda::wmma;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
template <class Layout>
using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, Layout>;
template <class Layout>
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, Layout>;

constexpr int kTile = 64;
constexpr int kWarps = 4;
constexpr int kAttentionThreads = 32 * kWarps;
// Row pitches: a few elements more than a row, against bank conflicts, yet with every 16-row,
// 16-column corner on the 32-byte boundary that WMMA asks for.
constexpr int kScorePitch = kTile + 4;   // float
constexpr int kWeightPitch = kTile + 8;  // bf16
template <int D>
constexpr int kPitch = D + 8;  // bf16

// Hands out shared memory in pieces; `shared_bytes` below must add up the same.
class SharedMemory {
 public:
  template <class T>
  __device__ T* take(int count) {
    T* piece = reinterpret_cast<T*>(shared_memory + used_);
    used_ += count * static_cast<int>(sizeof(T));
    return piece;
  }

 private:
  int used_ = 0;
};

// Where a sequence's rows of one head start, and how far apart they are.
struct Rows {
  long first;
  int pitch;
};

// Rows `row` to row + 63 of a head into shared memory; those past `length` become zero.
template <int D>
__device__ void load_tile(bf16* tile, const bf16* from, Rows rows, int row, int length) {
  constexpr int kPacks = D / kPack;
  for (int i = threadIdx.x; i < kTile * kPacks; i += kAttentionThreads) {
    const int r = i / kPacks, c = i % kPacks * kPack;
    Pack p;
    for (int j = 0; j < kPack; ++j) p.values[j] = to_bf16(0.0f);
    if (row + r < length)
      p = *reinterpret_cast<const Pack*>(from + rows.first +
                                         static_cast<long>(row + r) * rows.pitch + c);
    *reinterpret_cast<Pack*>(tile + r * kPitch<D> + c) = p;
  }
}

// scores[16 rows of the warp][64] = a b^T over D, for tiles a and b.
template <int D>
__device__ void score_rows(const bf16* a, const bf16* b, float* scores, int warp) {
  for (int column = 0; column < kTile; column += 16) {
    Accumulator sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int d = 0; d < D; d += 16) {
      Left<wmma::row_major> left;
      Right<wmma::col_major> right;  // b^T: rows of b are its columns
      wmma::load_matrix_sync(left, a + warp * 16 * kPitch<D> + d, kPitch<D>);
      wmma::load_matrix_sync(right, b + column * kPitch<D> + d, kPitch<D>);
      wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(scores + warp * 16 * kScorePitch + column, sum, kScorePitch,
                            wmma::mem_row_major);
  }
}

// sum[16 rows of the warp][16 columns at d] += weights[those rows][64] tile[64][D].
template <int D>
__device__ void add_product(Accumulator& sum, const bf16* weights, const bf16* tile, int warp,
                            int d) {
  for (int inner = 0; inner < kTile; inner += 16) {
    Left<wmma::row_major> left;
    Right<wmma::row_major> right;
    wmma::load_matrix_sync(left, weights + warp * 16 * kWeightPitch + inner, kWeightPitch);
    wmma::load_matrix_sync(right, tile + inner * kPitch<D> + d, kPitch<D>);
    wmma::mma_sync(sum, left, right, sum);
  }
}

// The same with the weights transposed: rows of the result are columns of the weights.
template <int D>
__device__ void add_transposed_product(Accumulator& sum, const bf16* weights, const bf16* tile,
                                       int warp, int d) {
  for (int inner = 0; inner < kTile; inner += 16) {
    Left<wmma::col_major> left;
    Right<wmma::row_major> right;
    wmma::load_matrix_sync(left, weights + inner * kWeightPitch + warp * 16, kWeightPitch);
    wmma::load_matrix_sync(right, tile + inner * kPitch<D> + d, kPitch<D>);
    wmma::mma_sync(sum, left, right, sum);
  }
}

// Hands each element of a 16x16 accumulator to use(row, column, value), through `scratch` (the
// warp's own rows of a score tile), since its place in registers is not specified.
template <class Use>
__device__ void for_each_element(const Accumulator& sum, float* scratch, const Use& use) {
  __syncwarp();
  wmma::store_matrix_sync(scratch, sum, kScorePitch, wmma::mem_row_major);
  __syncwarp();
  const int lane = threadIdx.x % 32;
  for (int i = lane; i < 256; i += 32) use(i / 16, i % 16, scratch[i / 16 * kScorePitch + i % 16]);
}

// Writes the warp's 16 rows of a [64][D] result that is held in accumulators.
template <int D>
__device__ void store_rows(bf16* to, Rows rows, const Accumulator (&sums)[D / 16], float* scratch,
                           int first_row, int length) {
  MLLMSIM_UNROLL
  for (int block = 0; block < D / 16; ++block)
    for_each_element(sums[block], scratch, [&](int r, int c, float value) {
      if (first_row + r < length)
        to[rows.first + static_cast<long>(first_row + r) * rows.pitch + block * 16 + c] =
            to_bf16(value);
    });
}

__device__ inline bool visible(int query, int key, int length, bool causal) {
  return key < length && query < length && (!causal || key <= query);
}

}  // namespace mllmsim::calibrate::cuda
