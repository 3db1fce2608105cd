// Attention by our own kernels: slower than a vendor's, so the raw file says which was used.
#include "cost_models/calibrate/cuda/tasks.hpp"

namespace mllmsim::calibrate::cuda {

std::string attention_kernel_name() { return "builtin-flash"; }

Kernel attention_kernel(const AttentionTask& t) {
  if (t.head_dim != 64 && t.head_dim != 80 && t.head_dim != 128)
    throw CannotMeasure("builtin-flash has head dimensions 64, 80 and 128");
  const std::int64_t tokens = t.length * t.batch;
  const std::int64_t queries = tokens * t.heads * t.head_dim;
  const std::int64_t keys = tokens * t.kv_heads * t.head_dim;
  const auto q = random_buffer<bf16>(queries), output_gradient = random_buffer<bf16>(queries);
  const auto k = random_buffer<bf16>(keys), v = random_buffer<bf16>(keys);
  const auto output = device_buffer<bf16>(queries), dq = device_buffer<bf16>(queries);
  const auto dk = device_buffer<bf16>(keys), dv = device_buffer<bf16>(keys);
  const auto log_sum = device_buffer<float>(tokens * t.heads);
  const auto delta = device_buffer<float>(tokens * t.heads);
  const auto dq_sum = device_buffer<float>(queries);

  std::vector<int> offsets;
  for (std::int64_t i = 0; i <= t.batch; ++i) offsets.push_back(static_cast<int>(i * t.length));
  const auto device_offsets = device_buffer<int>(t.batch + 1);
  check_cuda(cudaMemcpy(device_offsets.get(), offsets.data(), offsets.size() * sizeof(int),
                        cudaMemcpyHostToDevice),
             "cudaMemcpy");

  const AttentionArguments a{q.get(),
                             k.get(),
                             v.get(),
                             output.get(),
                             log_sum.get(),
                             output_gradient.get(),
                             dq.get(),
                             dk.get(),
                             dv.get(),
                             dq_sum.get(),
                             delta.get(),
                             device_offsets.get(),
                             static_cast<int>(t.batch),
                             static_cast<int>(t.length),
                             static_cast<int>(tokens),
                             static_cast<int>(t.heads),
                             static_cast<int>(t.kv_heads),
                             static_cast<int>(t.head_dim),
                             t.causal};
  attention_forward(a, nullptr);  // the backward pass needs its results
  check_cuda(cudaDeviceSynchronize(), "attention");
  const bool backward = t.backward;
  // The captures keep the buffers that `a` points to.
  return [=](cudaStream_t stream) {
    (void)q, (void)k, (void)v, (void)output, (void)log_sum, (void)output_gradient, (void)dq;
    (void)dk, (void)dv, (void)dq_sum, (void)delta, (void)device_offsets;
    backward ? attention_backward(a, stream) : attention_forward(a, stream);
  };
}

}  // namespace mllmsim::calibrate::cuda
