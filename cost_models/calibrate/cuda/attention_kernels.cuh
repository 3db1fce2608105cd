// Attention without the matrix of scores (FlashAttention-2, Dao, 2023), simple rather than fastest.
//
// Forward, one block per 64 queries of a head, over tiles of 64 keys with the online softmax:
//   S  = scale Q K^T
//   m' = max(m, rowmax S)
//   P  = exp(S - m')
//   l  = l exp(m - m') + rowsum P
//   O  = O exp(m - m') + P V
// and in the end O / l and L = m + log l.
//
// Backward, one block per 64 keys of a key-value head, over the query heads that share it and their
// tiles of 64 queries:
//   P   = exp(S - L)
//   dV += P^T dO
//   dS  = scale P (dO V^T - delta)
//   dK += dS^T Q
//   dQ += dS K
// with delta = rowsum(dO O) beforehand; dQ is summed in fp32 by atomics and rounded afterwards.
#pragma once

#include "cost_models/calibrate/cuda/attention_tiles.cuh"

namespace mllmsim::calibrate::cuda {

template <int D>
constexpr int forward_shared_bytes() {
  return 3 * kTile * kPitch<D> * 2 + kTile * kScorePitch * 4 + kTile * kWeightPitch * 2 + kTile * 4;
}

template <int D>
constexpr int backward_shared_bytes() {
  return 4 * kTile * kPitch<D> * 2 + 2 * kTile * kScorePitch * 4 + 2 * kTile * kWeightPitch * 2 +
         2 * kTile * 4;
}

// Two lanes share a row: its softmax state, the same in both.
struct SoftmaxRow {
  float largest = Max::kNeutral;
  float sum = 0;
};

// Turns the warp's 16 rows of scores into weights relative to the new maximum; returns the factor
// for what was summed before. row: in the tile; query, key: in the sequence.
__device__ inline float softmax_step(SoftmaxRow& state, const float* scores, bf16* weights,
                                     float scale, int query, int key, int length, bool causal) {
  const int half = threadIdx.x % 2 * (kTile / 2);
  float largest = state.largest;
  for (int c = half; c < half + kTile / 2; ++c)
    if (key + c < length && (!causal || key + c <= query))
      largest = Max::combine(largest, scale * scores[c]);
  largest = Max::combine(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
  const float factor = __expf(state.largest - largest);
  float sum = 0;
  for (int c = half; c < half + kTile / 2; ++c) {
    const bool seen = key + c < length && (!causal || key + c <= query);
    const float weight = seen ? __expf(scale * scores[c] - largest) : 0.0f;
    weights[c] = to_bf16(weight);
    sum += weight;
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  state = {largest, state.sum * factor + sum};
  return factor;
}

template <int D>
__global__ void attention_forward_kernel(AttentionArguments a) {
  const int begin = a.offsets[blockIdx.z], length = a.offsets[blockIdx.z + 1] - begin;
  const int first_query = blockIdx.x * kTile, head = blockIdx.y;
  if (first_query >= length) return;
  const int warp = threadIdx.x / 32, row = warp * 16 + threadIdx.x % 32 / 2;
  SharedMemory memory;
  bf16* q = memory.take<bf16>(kTile * kPitch<D>);
  bf16* k = memory.take<bf16>(kTile * kPitch<D>);
  bf16* v = memory.take<bf16>(kTile * kPitch<D>);
  float* scores = memory.take<float>(kTile * kScorePitch);
  bf16* weights = memory.take<bf16>(kTile * kWeightPitch);
  float* factors = memory.take<float>(kTile);
  float* scratch = scores + warp * 16 * kScorePitch;
  const Rows queries{(static_cast<long>(begin) * a.heads + head) * D, a.heads * D};
  const int kv_head = head / (a.heads / a.kv_heads);
  const Rows keys{(static_cast<long>(begin) * a.kv_heads + kv_head) * D, a.kv_heads * D};

  // Which row each register of an accumulator belongs to: read back from a tile of row numbers.
  Accumulator row_numbers;
  for (int i = threadIdx.x % 32; i < 256; i += 32)
    scratch[i / 16 * kScorePitch + i % 16] = static_cast<float>(warp * 16 + i / 16);
  __syncwarp();
  wmma::load_matrix_sync(row_numbers, scratch, kScorePitch, wmma::mem_row_major);

  Accumulator output[D / 16];
  MLLMSIM_UNROLL
  for (int block = 0; block < D / 16; ++block) wmma::fill_fragment(output[block], 0.0f);
  const auto scale_rows = [&](float factor) {
    __syncwarp();
    if (threadIdx.x % 2 == 0) factors[row] = factor;
    __syncwarp();
    MLLMSIM_UNROLL
    for (int i = 0; i < Accumulator::num_elements; ++i) {
      const float f = factors[static_cast<int>(row_numbers.x[i])];
      MLLMSIM_UNROLL
      for (int block = 0; block < D / 16; ++block) output[block].x[i] *= f;
    }
  };

  load_tile<D>(q, a.q, queries, first_query, length);
  const float scale = rsqrtf(static_cast<float>(D));
  SoftmaxRow state;
  const int end = a.causal && first_query + kTile < length ? first_query + kTile : length;
  for (int key = 0; key < end; key += kTile) {
    __syncthreads();
    load_tile<D>(k, a.k, keys, key, length);
    load_tile<D>(v, a.v, keys, key, length);
    __syncthreads();
    score_rows<D>(q, k, scores, warp);
    __syncwarp();
    scale_rows(softmax_step(state, scores + row * kScorePitch, weights + row * kWeightPitch, scale,
                            first_query + row, key, length, a.causal));
    MLLMSIM_UNROLL
    for (int block = 0; block < D / 16; ++block)
      add_product<D>(output[block], weights, v, warp, block * 16);
  }
  scale_rows(1.0f / state.sum);
  store_rows<D>(a.output, queries, output, scratch, first_query + warp * 16, length);
  const int query = first_query + row;
  if (query < length && threadIdx.x % 2 == 0)
    a.log_sum[static_cast<long>(begin + query) * a.heads + head] = state.largest + logf(state.sum);
}

// One warp per token and head.
__global__ void attention_delta_kernel(AttentionArguments a) {
  const long pair = static_cast<long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (pair >= static_cast<long>(a.tokens) * a.heads) return;
  float dot = 0;
  for (int d = threadIdx.x % 32; d < a.head_dim; d += 32)
    dot += to_float(a.output[pair * a.head_dim + d]) *
           to_float(a.output_gradient[pair * a.head_dim + d]);
  dot = warp_reduce<Sum>(dot);
  if (threadIdx.x % 32 == 0) a.delta[pair] = dot;
}

// The warp's 16 rows: from scores and dP to the weights P and the gradient dS, in bf16.
__device__ inline void weight_gradients(const float* scores, const float* dp, bf16* weights,
                                        bf16* ds, float scale, float log_sum, float delta,
                                        int query, int key, int length, bool causal) {
  const int half = threadIdx.x % 2 * (kTile / 2);
  for (int c = half; c < half + kTile / 2; ++c) {
    const bool seen = visible(query, key + c, length, causal);
    const float p = seen ? __expf(scale * scores[c] - log_sum) : 0.0f;
    weights[c] = to_bf16(p);
    ds[c] = to_bf16(scale * p * (dp[c] - delta));
  }
}

template <int D>
__global__ void attention_backward_kernel(AttentionArguments a) {
  const int begin = a.offsets[blockIdx.z], length = a.offsets[blockIdx.z + 1] - begin;
  const int first_key = blockIdx.x * kTile, kv_head = blockIdx.y;
  if (first_key >= length) return;
  const int warp = threadIdx.x / 32, row = warp * 16 + threadIdx.x % 32 / 2;
  SharedMemory memory;
  bf16* k = memory.take<bf16>(kTile * kPitch<D>);
  bf16* v = memory.take<bf16>(kTile * kPitch<D>);
  bf16* q = memory.take<bf16>(kTile * kPitch<D>);
  bf16* dout = memory.take<bf16>(kTile * kPitch<D>);
  float* scores = memory.take<float>(kTile * kScorePitch);
  float* dp = memory.take<float>(kTile * kScorePitch);
  bf16* weights = memory.take<bf16>(kTile * kWeightPitch);
  bf16* ds = memory.take<bf16>(kTile * kWeightPitch);
  float* scratch = scores + warp * 16 * kScorePitch;
  const Rows keys{(static_cast<long>(begin) * a.kv_heads + kv_head) * D, a.kv_heads * D};
  load_tile<D>(k, a.k, keys, first_key, length);
  load_tile<D>(v, a.v, keys, first_key, length);

  Accumulator dk[D / 16], dv[D / 16];
  MLLMSIM_UNROLL
  for (int block = 0; block < D / 16; ++block) {
    wmma::fill_fragment(dk[block], 0.0f);
    wmma::fill_fragment(dv[block], 0.0f);
  }
  const float scale = rsqrtf(static_cast<float>(D));
  const int group = a.heads / a.kv_heads;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const Rows queries{(static_cast<long>(begin) * a.heads + head) * D, a.heads * D};
    for (int query = a.causal ? first_key : 0; query < length; query += kTile) {
      __syncthreads();
      load_tile<D>(q, a.q, queries, query, length);
      load_tile<D>(dout, a.output_gradient, queries, query, length);
      __syncthreads();
      score_rows<D>(q, k, scores, warp);
      score_rows<D>(dout, v, dp, warp);
      __syncwarp();
      const bool inside = query + row < length;
      const long at = static_cast<long>(begin + query + row) * a.heads + head;
      weight_gradients(scores + row * kScorePitch, dp + row * kScorePitch,
                       weights + row * kWeightPitch, ds + row * kWeightPitch, scale,
                       inside ? a.log_sum[at] : 0.0f, inside ? a.delta[at] : 0.0f, query + row,
                       first_key, length, a.causal);
      __syncthreads();
      MLLMSIM_UNROLL
      for (int block = 0; block < D / 16; ++block) {
        add_transposed_product<D>(dv[block], weights, dout, warp, block * 16);
        add_transposed_product<D>(dk[block], ds, q, warp, block * 16);
        Accumulator dq;
        wmma::fill_fragment(dq, 0.0f);
        add_product<D>(dq, ds, k, warp, block * 16);
        const int first_row = query + warp * 16;
        for_each_element(dq, scratch, [&](int r, int c, float value) {
          if (first_row + r < length)
            atomicAdd(&a.dq_sum[queries.first + static_cast<long>(first_row + r) * queries.pitch +
                                block * 16 + c],
                      value);
        });
      }
    }
  }
  store_rows<D>(a.dk, keys, dk, scratch, first_key + warp * 16, length);
  store_rows<D>(a.dv, keys, dv, scratch, first_key + warp * 16, length);
}

__global__ void attention_round_kernel(AttentionArguments a) {
  const long n = static_cast<long>(a.tokens) * a.heads * a.head_dim;
  const long stride = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
    a.dq[i] = to_bf16(a.dq_sum[i]);
}

}  // namespace mllmsim::calibrate::cuda
