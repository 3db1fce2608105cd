// Launches of the memory-bound kernels.
#include "cost_models/calibrate/cuda/kernels.hpp"
#include "cost_models/calibrate/cuda/memory_kernels.cuh"

namespace mllmsim::calibrate::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kReduction = kThreads / 32 * sizeof(float);  // shared memory of block_reduce

// Enough blocks to fill any GPU, each with several iterations when there is much to do.
unsigned grid(long n) {
  const long blocks = (n + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 8192 ? blocks : 8192);
}

const Pack* packs(const bf16* x) { return reinterpret_cast<const Pack*>(x); }
Pack* packs(bf16* x) { return reinterpret_cast<Pack*>(x); }

}  // namespace

void launch_empty(cudaStream_t stream) { empty_kernel<<<1, 32, 0, stream>>>(); }

void fill_normal(bf16* x, long n, cudaStream_t stream) {
  fill_bf16_kernel<<<grid(n), kThreads, 0, stream>>>(x, n);
}
void fill_normal(float* x, long n, cudaStream_t stream) {
  fill_float_kernel<<<grid(n), kThreads, 0, stream>>>(x, n);
}
void fill_indices(int* x, long n, int limit, cudaStream_t stream) {
  fill_index_kernel<<<grid(n), kThreads, 0, stream>>>(x, n, limit);
}

void add(const bf16* a, const bf16* b, bf16* c, long n, cudaStream_t stream) {
  add_kernel<<<grid(n / kPack), kThreads, 0, stream>>>(packs(a), packs(b), packs(c), n / kPack);
}
void gelu(const bf16* a, bf16* c, long n, cudaStream_t stream) {
  gelu_kernel<<<grid(n / kPack), kThreads, 0, stream>>>(packs(a), packs(c), n / kPack);
}

void norm(const NormArguments& a, cudaStream_t stream) {
  norm_kernel<<<a.rows, kThreads, kReduction, stream>>>(packs(a.x), a.weight, packs(a.y),
                                                        a.inverse_rms, a.row_length / kPack);
}

void norm_backward(const NormArguments& a, cudaStream_t stream) {
  norm_backward_kernel<<<a.rows, kThreads, kReduction, stream>>>(
      packs(a.x), packs(a.dy), a.weight, a.inverse_rms, packs(a.y), a.row_length / kPack);
  const dim3 columns_and_rows(grid(a.row_length), a.rows < 64 ? a.rows : 64);
  norm_weight_gradient_kernel<<<columns_and_rows, kThreads, 0, stream>>>(
      a.x, a.dy, a.inverse_rms, a.dweight, a.rows, a.row_length);
}

void softmax(const bf16* x, bf16* y, const int* labels, int rows, int row_length,
             cudaStream_t stream) {
  softmax_kernel<<<rows, kThreads, kReduction, stream>>>(packs(x), packs(y), labels,
                                                         row_length / kPack);
}

void gather(const bf16* table, const int* indices, bf16* out, int rows, int row_length,
            cudaStream_t stream) {
  gather_kernel<<<rows, kThreads, 0, stream>>>(packs(table), indices, packs(out),
                                               row_length / kPack);
}

void adam(const AdamArguments& a, long n, cudaStream_t stream) {
  const AdamState state{a.gradient, a.weight, a.first, a.second, a.copy};
  adam_kernel<<<grid(n), kThreads, 0, stream>>>(state, n);
}

}  // namespace mllmsim::calibrate::cuda
