// LoRA and DoRA beside a linear layer; see layer_kernels.hpp.
#include "cost_models/layers/layer_kernels.hpp"

namespace mllmsim::costs {

void adapter_forward(KernelList& list, const Linear& l, std::int64_t tokens) {
  const std::int64_t rank = l.adapter_rank;
  if (rank == 0) return;
  list.gemm("adapter down", {tokens, rank, l.inputs});
  list.gemm("adapter up", {tokens, l.outputs, rank});
  list.elementwise("adapter sum", tokens * l.outputs, kBf16 + kBf16 + kBf16);
  if (!l.dora) return;
  list.gemm("adapter product", {l.inputs, l.outputs, rank});
  list.elementwise("adapter column norms", l.inputs * l.outputs, kBf16 + kBf16);
  list.elementwise("adapter magnitude", tokens * l.outputs, kBf16 + kBf16);
}

void adapter_backward(KernelList& list, const Linear& l, std::int64_t tokens) {
  const std::int64_t rank = l.adapter_rank;
  if (rank == 0) return;
  if (l.dora) {
    list.elementwise("adapter magnitude backward", tokens * l.outputs, kBf16 + kBf16);
    list.elementwise("adapter magnitude gradient", tokens * l.outputs, kBf16 + kBf16);
  }
  list.gemm("adapter up input gradient", {tokens, rank, l.outputs, GemmPass::input_gradient});
  list.gemm("adapter up weight gradient", {rank, l.outputs, tokens, GemmPass::weight_gradient});
  list.gemm("adapter down input gradient", {tokens, l.inputs, rank, GemmPass::input_gradient});
  list.gemm("adapter down weight gradient", {l.inputs, rank, tokens, GemmPass::weight_gradient});
  list.elementwise("adapter gradient sum", tokens * l.inputs, kBf16 + kBf16 + kBf16);
}

}  // namespace mllmsim::costs
