// Which experts a token goes to, as Megatron-Core finds out: a product in bf16 and kernels on
// [tokens, num_experts], far shorter than their launches, so counted rather than described
// (megatron/core/transformer/moe/router.py and moe_utils.py of 0.16; a copy between host and device
// is a kernel here).
//
//                        forward                                                     backward
//   choice               softmax, top-k (2), probabilities and map scattered (6)     4
//   load balancing loss  scores (1), their top-k (2) and map (4), rows per expert,   6
//                        loss (4), its log (2)
//   moe_router_fusion    choice 1, scores 1, rows per expert 1, loss 1, log 2        3
//   capacity             top-k of each expert's tokens (2), mask (3), product (1)    1
//
// The two gradients of the logits are added, as are the router's weights' to the bucket.
//
// What a dispatcher finds out before it sends (token_dispatcher.py, fused_a2a.py; DeepEP's
// buffer.py and HybridEP's executor.cu):
//   alltoall   rows per expert and rank summed (6), told to the host (5), row ids for the two
//              permutations (5), on one rank 2, 1 and 3; at a capacity row ids alone (3)
//   deepep     top-k (2), layout, notice, map (2), row ids (3)                       3
//   hybridep   every rank gathers the map of all and scans it; counts, flags (2)     1
//
// Left out: choices limited to groups of experts, losses of the whole batch, expert biases.
#include "cost_models/layers/block_kernels.hpp"

namespace mllmsim::costs {
namespace {

constexpr int kLogged = 2, kSum = 1;

struct Kernels {
  int forward = 0, backward = 0;
};

Kernels routing(const Software& s) {
  const Kernels choice = s.moe_router_fusion ? Kernels{1, 1} : Kernels{9, 4};
  const Kernels loss = s.moe_router_fusion ? Kernels{3 + kLogged, 2} : Kernels{12 + kLogged, 6};
  const Kernels capacity = s.moe_expert_capacity_factor > 0 ? Kernels{6, 1} : Kernels{};
  return {choice.forward + loss.forward + capacity.forward,
          choice.backward + loss.backward + capacity.backward + 2 * kSum};
}

Kernels bookkeeping(const Software& s, std::int64_t ranks) {
  const bool capacity = s.moe_expert_capacity_factor > 0;
  if (ranks == 1) return {capacity ? 3 : 6, 0};
  switch (s.moe_token_dispatcher) {
    case TokenDispatcher::alltoall:
      return {capacity ? 3 : 16, 0};
    case TokenDispatcher::deepep:
      return {9, 3};
    case TokenDispatcher::hybridep:
      return {3, 1};
  }
  return {};
}

}  // namespace

void router_forward(KernelList& list, const Block& b, std::int64_t rows) {
  const Linear l = ExpertLinears(b).router;
  list.gemm(l.forward, {rows, l.outputs, l.inputs, GemmPass::forward});
  list.small_kernels("routing", routing(b.setting.software).forward, rows * l.outputs,
                     kFp32 + kFp32);
}

void router_backward(KernelList& list, const Block& b, std::int64_t rows) {
  const Linear l = ExpertLinears(b).router;
  list.small_kernels("routing backward", routing(b.setting.software).backward, rows * l.outputs,
                     kFp32 + kFp32);
  list.gemm(l.input_gradient_name, {rows, l.inputs, l.outputs, GemmPass::input_gradient});
  if (b.setting.trained)
    list.gemm(l.weight_gradient_name, {l.inputs, l.outputs, rows, GemmPass::weight_gradient});
  list.elementwise("add router gradient", rows * l.inputs, kBf16 + kBf16 + kBf16);
}

void dispatch_bookkeeping(KernelList& list, const Block& b, std::int64_t rows, bool backward) {
  const LayerSetting& s = b.setting;
  const std::int64_t ranks = s.experts_apart ? s.expert_group.ranks : 1;
  const Kernels kernels = bookkeeping(s.software, ranks);
  const std::int64_t experts = b.shape.experts.num_experts;
  if (!backward && ranks > 1 && s.software.moe_token_dispatcher == TokenDispatcher::hybridep) {
    const std::int64_t map = rows * ranks * experts;  // a byte each
    list.exchange("ep routing map", {CollectiveOp::all_gather, Bytes{map}, s.expert_group});
    list.small_kernels("scan routing map", 1, map, kMask);
  }
  list.small_kernels("dispatch bookkeeping", backward ? kernels.backward : kernels.forward,
                     ceil_div(rows * experts, ranks), kFp32 + kFp32);
}

}  // namespace mllmsim::costs
