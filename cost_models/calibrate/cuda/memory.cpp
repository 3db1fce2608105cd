// Memory-bound tasks and copies.
#include <fmt/core.h>

#include <algorithm>

#include "cost_models/calibrate/cuda/tasks.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

constexpr int kVocabulary = 32000;  // rows of the embedding table, more than any cache holds

Kernel elementwise_kernel(std::int64_t n, bool activation) {
  const auto a = random_buffer<bf16>(n), c = device_buffer<bf16>(n);
  if (activation) return [=](cudaStream_t s) { gelu(a.get(), c.get(), n, s); };
  const auto b = random_buffer<bf16>(n);
  return [=](cudaStream_t s) { add(a.get(), b.get(), c.get(), n, s); };
}

Kernel norm_kernel(int rows, int row_length, bool backward) {
  const std::int64_t n = std::int64_t{rows} * row_length;
  const auto x = random_buffer<bf16>(n), dy = random_buffer<bf16>(backward ? n : 8);
  const auto weight = random_buffer<bf16>(row_length), y = device_buffer<bf16>(n);
  const auto inverse_rms = device_buffer<float>(rows), dweight = random_buffer<float>(row_length);
  return [=](cudaStream_t s) {
    const NormArguments a{x.get(),           weight.get(),  dy.get(), y.get(),
                          inverse_rms.get(), dweight.get(), rows,     row_length};
    backward ? norm_backward(a, s) : norm(a, s);
  };
}

Kernel softmax_kernel(int rows, int row_length, bool cross_entropy) {
  const std::int64_t n = std::int64_t{rows} * row_length;
  const auto x = random_buffer<bf16>(n), y = device_buffer<bf16>(n);
  const auto labels = device_buffer<int>(rows);
  fill_indices(labels.get(), rows, row_length, nullptr);
  return [=](cudaStream_t s) {
    softmax(x.get(), y.get(), cross_entropy ? labels.get() : nullptr, rows, row_length, s);
  };
}

Kernel embedding_kernel(int rows, int row_length) {
  const auto table = random_buffer<bf16>(std::int64_t{kVocabulary} * row_length);
  const auto out = device_buffer<bf16>(std::int64_t{rows} * row_length);
  const auto indices = device_buffer<int>(rows);
  fill_indices(indices.get(), rows, kVocabulary, nullptr);
  return
      [=](cudaStream_t s) { gather(table.get(), indices.get(), out.get(), rows, row_length, s); };
}

Kernel optimizer_kernel(std::int64_t n) {
  const auto gradient = random_buffer<float>(n), weight = random_buffer<float>(n);
  const auto first = device_buffer<float>(n), second = device_buffer<float>(n);
  for (const auto& moment : {first, second})
    check_cuda(cudaMemset(moment.get(), 0, static_cast<std::size_t>(n) * sizeof(float)),
               "cudaMemset");
  const auto copy = device_buffer<bf16>(n);
  return [=](cudaStream_t s) {
    adam({gradient.get(), weight.get(), first.get(), second.get(), copy.get()}, n, s);
  };
}

}  // namespace

Kernel memory_kernel(const MemoryTask& t) {
  if (t.row_length % 8 != 0 || t.rows > INT32_MAX || (t.rows > 1 && t.row_length > INT32_MAX))
    throw CannotMeasure("rows must be multiples of 8 long");
  const int rows = static_cast<int>(t.rows), row_length = static_cast<int>(t.row_length);
  switch (t.op) {
    case costs::MemoryOp::elementwise:
      return elementwise_kernel(t.rows * t.row_length, t.activation);
    case costs::MemoryOp::activation:
      return elementwise_kernel(t.rows * t.row_length, true);
    case costs::MemoryOp::activation_backward:
    case costs::MemoryOp::cross_entropy_backward:  // two tensors in, one out, as an addition
      return elementwise_kernel(t.rows * t.row_length, false);
    case costs::MemoryOp::norm:
      return norm_kernel(rows, row_length, false);
    case costs::MemoryOp::norm_backward:
      return norm_kernel(rows, row_length, true);
    case costs::MemoryOp::softmax:
      return softmax_kernel(rows, row_length, false);
    case costs::MemoryOp::cross_entropy:
      return softmax_kernel(rows, row_length, true);
    case costs::MemoryOp::embedding:
      return embedding_kernel(rows, row_length);
    case costs::MemoryOp::optimizer:
      return optimizer_kernel(t.rows * t.row_length);
    case costs::MemoryOp::quantise_mxfp8:
      throw CannotMeasure("the kernel is Transformer Engine's, not one of this program");
  }
  throw InternalError("unknown memory-bound kernel");
}

Kernel copy_kernel(const CopyTask& t) {
  const auto bytes = static_cast<std::size_t>(t.bytes);
  const auto from = t.kind == CopyKind::h2d ? pinned_buffer(t.bytes) : device_buffer<char>(t.bytes);
  const auto to = t.kind == CopyKind::d2h ? pinned_buffer(t.bytes) : device_buffer<char>(t.bytes);
  return [=](cudaStream_t s) {
    check_cuda(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDefault, s),
               "cudaMemcpyAsync");
  };
}

}  // namespace mllmsim::calibrate::cuda
