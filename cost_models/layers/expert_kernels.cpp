// A mixture of experts on one rank, as Megatron-Core runs it without expert parallelism: router,
// rows copied to their experts' order, one grouped GEMM for all experts, rows summed back.
//
//   router        rows x num_experts GEMM, softmax and top-k in fp32
//   permute       tokens read, routed rows written; unpermute the other way round
//   experts       GEMMs of routed rows / num_experts, num_experts in a launch; the router's
//                 probability is part of the activation (moe_apply_probs)
//   shared        an MLP on all tokens, added
//
// Expert parallelism would put its all-to-all around permute and unpermute, and leave fewer experts
// with more rows each to a rank; the reader refuses it.
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

struct ExpertShapes {
  const Block& b;
  std::int64_t tokens, experts, width, shared, gate;
  RoutedRows rows;

  ExpertShapes(const Block& block, std::int64_t tokens_)
      : b(block),
        tokens(tokens_),
        experts(b.shape.experts.num_experts),
        width(ceil_div(b.shape.experts.moe_intermediate_size, b.setting.tp())),
        shared(ceil_div(b.shape.experts.shared_expert_intermediate_size, b.setting.tp())),
        gate(b.shape.gated_mlp ? 2 : 1),
        rows(b.shape.experts, tokens_) {}

  std::int64_t h() const { return b.shape.hidden_size; }
  Linear router() const {
    return {"router", "router input gradient", "router weight gradient", h(), experts};
  }
  Linear shared_up() const {
    return {"shared expert up", "shared expert up input gradient",
            "shared expert up weight gradient", h(), gate * shared};
  }
  Linear shared_down() const {
    return {"shared expert down", "shared expert down input gradient",
            "shared expert down weight gradient", shared, h()};
  }
};

void grouped_backward(KernelList& list, const ExpertShapes& x, std::string_view input_name,
                      std::string_view weight_name, std::int64_t inputs, std::int64_t outputs) {
  list.gemm(input_name, {x.rows.of_expert, inputs, outputs, GemmPass::input_gradient, x.experts});
  if (x.b.setting.trained)
    list.gemm(weight_name,
              {inputs, outputs, x.rows.of_expert, GemmPass::weight_gradient, x.experts});
}

}  // namespace

RoutedRows::RoutedRows(const Experts& experts, std::int64_t tokens)
    : all(tokens * experts.num_experts_per_tok), of_expert(ceil_div(all, experts.num_experts)) {}

void experts_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const ExpertShapes x(b, tokens);
  const LayerSetting& s = b.setting;
  whole_forward(list, s, x.router(), s.rows(tokens));
  list.memory("top-k", MemoryOp::softmax, s.rows(tokens), x.experts, kFp32 + kFp32);
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, s.activation(tokens * x.h()));
  list.elementwise("permute", (tokens + x.rows.all) * x.h(), kBf16);
  list.gemm("experts up",
            {x.rows.of_expert, x.gate * x.width, x.h(), GemmPass::forward, x.experts});
  activation_forward(list, s, b.shape.gated_mlp, b.shape.linear_bias, x.rows.all * x.width);
  list.gemm("experts down", {x.rows.of_expert, x.h(), x.width, GemmPass::forward, x.experts});
  list.elementwise("unpermute", (tokens + x.rows.all) * x.h(), kBf16);
  if (x.shared > 0) {
    whole_forward(list, s, x.shared_up(), tokens);
    activation_forward(list, s, b.shape.gated_mlp, false, tokens * x.shared);
    whole_forward(list, s, x.shared_down(), tokens);
    list.elementwise("add shared expert", tokens * x.h(), kBf16 + kBf16 + kBf16);
  }
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                  s.activation(tokens * x.h()));
}

void experts_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const ExpertShapes x(b, tokens);
  const LayerSetting& s = b.setting;
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, s.activation(tokens * x.h()));
  if (x.shared > 0) {
    whole_backward(list, s, x.shared_down(), tokens);
    activation_backward(list, s, b.shape.gated_mlp, false, tokens * x.shared);
    whole_backward(list, s, x.shared_up(), tokens);
  }
  list.elementwise("unpermute backward", (tokens + x.rows.all) * x.h(), kBf16);
  grouped_backward(list, x, "experts down input gradient", "experts down weight gradient", x.width,
                   x.h());
  activation_backward(list, s, b.shape.gated_mlp, b.shape.linear_bias, x.rows.all * x.width);
  grouped_backward(list, x, "experts up input gradient", "experts up weight gradient", x.h(),
                   x.gate * x.width);
  list.elementwise("permute backward", (tokens + x.rows.all) * x.h(), kBf16);
  if (x.shared > 0)
    list.elementwise("add shared expert gradient", tokens * x.h(), kBf16 + kBf16 + kBf16);
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                  s.activation(tokens * x.h()));
  list.memory("top-k backward", MemoryOp::softmax, s.rows(tokens), x.experts, kFp32 + kFp32);
  whole_backward(list, s, x.router(), s.rows(tokens));
  list.elementwise("add router gradient", s.rows(tokens) * x.h(), kBf16 + kBf16 + kBf16);
}

}  // namespace mllmsim::costs
