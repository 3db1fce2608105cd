// Launches of the attention kernels, one instance for each head dimension.
#include "cost_models/calibrate/cuda/attention_kernels.cuh"

#include "cost_models/calibrate/cuda/kernels.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

unsigned tiles(const AttentionArguments& a) { return (a.longest + kTile - 1) / kTile; }

template <int D>
void forward(const AttentionArguments& a, cudaStream_t stream) {
  constexpr int kBytes = forward_shared_bytes<D>();
  cudaFuncSetAttribute(attention_forward_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kBytes);
  const dim3 grid(tiles(a), a.heads, a.sequences);
  attention_forward_kernel<D><<<grid, kAttentionThreads, kBytes, stream>>>(a);
}

template <int D>
void backward(const AttentionArguments& a, cudaStream_t stream) {
  constexpr int kBytes = backward_shared_bytes<D>();
  const long pairs = static_cast<long>(a.tokens) * a.heads;
  cudaMemsetAsync(a.dq_sum, 0, pairs * D * sizeof(float), stream);
  attention_delta_kernel<<<(pairs + kWarps - 1) / kWarps, kAttentionThreads, 0, stream>>>(a);
  cudaFuncSetAttribute(attention_backward_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kBytes);
  const dim3 grid(tiles(a), a.kv_heads, a.sequences);
  attention_backward_kernel<D><<<grid, kAttentionThreads, kBytes, stream>>>(a);
  attention_round_kernel<<<2048, 256, 0, stream>>>(a);
}

}  // namespace

void attention_forward(const AttentionArguments& a, cudaStream_t stream) {
  switch (a.head_dim) {
    case 64:
      return forward<64>(a, stream);
    case 80:
      return forward<80>(a, stream);
    case 128:
      return forward<128>(a, stream);
  }
}

void attention_backward(const AttentionArguments& a, cudaStream_t stream) {
  switch (a.head_dim) {
    case 64:
      return backward<64>(a, stream);
    case 80:
      return backward<80>(a, stream);
    case 128:
      return backward<128>(a, stream);
  }
}

}  // namespace mllmsim::calibrate::cuda
