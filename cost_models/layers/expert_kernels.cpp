// A mixture of experts on one rank, as Megatron-Core runs it: router, rows copied to their experts'
// order, one grouped GEMM for all experts, rows summed back.
//
//   router        router_kernels.cpp
//   permute       tokens read, routed rows written; unpermute the other way round
//   experts       GEMMs of routed rows / num_experts, num_experts in a launch; the router's
//                 probability is part of the activation (moe_apply_probs)
//   shared        an MLP on all tokens, added
//
// Here all experts are on every rank and tp ranks split each of them, so that tokens are gathered
// before and summed after; expert_parallel.cpp has experts on ranks of their own.
//
// Routing is taken to be even unless the software says otherwise (moe_load_imbalance, of ep ranks;
// moe_expert_capacity_factor). In quantised formats an expert's input and the gradient of its
// output are quantised as those of other linear layers.
#include <cmath>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

std::int64_t gate_of(const Block& b) { return b.shape.gated_mlp ? 2 : 1; }

bool adapted(const Block& b, bool target) { return target && b.shape.adapters.lora_rank > 0; }

// Adapters stand between the products and the activation, so that these are apart.
bool fused(const Block& b) {
  const Adapters& a = b.shape.adapters;
  return b.setting.software.moe_fused_grouped_mlp && !adapted(b, a.up || a.down);
}

void quantise(KernelList& list, const Block& b, const ExpertShard& x, std::string_view name,
              std::int64_t width) {
  const std::int64_t values = x.rows * width;
  const int copies = b.setting.trained ? 2 : 1;
  if (fused(b))
    list.quantise(name, values, copies);
  else
    list.quantise_experts(name, values, copies, x.experts);
}

void grouped_forward(KernelList& list, const Block& b, const ExpertShard& x, std::string_view name,
                     std::int64_t inputs, std::int64_t outputs) {
  list.grouped_gemm(
      name, {x.of_expert(), outputs, inputs, GemmPass::forward, x.experts, b.setting.format},
      fused(b));
}

void grouped_backward(KernelList& list, const Block& b, const ExpertShard& x,
                      std::string_view input_name, std::string_view weight_name,
                      std::int64_t inputs, std::int64_t outputs) {
  const NumberFormat format = b.setting.format;
  list.grouped_gemm(input_name,
                    {x.of_expert(), inputs, outputs, GemmPass::input_gradient, x.experts, format},
                    fused(b));
  if (b.setting.trained)
    list.grouped_gemm(
        weight_name, {inputs, outputs, x.of_expert(), GemmPass::weight_gradient, x.experts, format},
        fused(b));
}

// Beside the product of each expert, as of any linear layer (adapter_kernels.cpp).
void grouped_adapter_forward(KernelList& list, const Block& b, const ExpertShard& x,
                             std::int64_t inputs, std::int64_t outputs) {
  const std::int64_t rank = b.shape.adapters.lora_rank, m = x.of_expert();
  list.grouped_gemm("adapter down", {m, rank, inputs, GemmPass::forward, x.experts}, false);
  list.grouped_gemm("adapter up", {m, outputs, rank, GemmPass::forward, x.experts}, false);
  list.elementwise("adapter sum", x.rows * outputs, kBf16 + kBf16 + kBf16);
}

void grouped_adapter_backward(KernelList& list, const Block& b, const ExpertShard& x,
                              std::int64_t inputs, std::int64_t outputs) {
  const std::int64_t rank = b.shape.adapters.lora_rank, m = x.of_expert();
  const auto product = [&](std::string_view name, std::int64_t rows, std::int64_t columns,
                           std::int64_t over, GemmPass pass) {
    list.grouped_gemm(name, {rows, columns, over, pass, x.experts}, false);
  };
  product("adapter up input gradient", m, rank, outputs, GemmPass::input_gradient);
  product("adapter up weight gradient", rank, outputs, m, GemmPass::weight_gradient);
  product("adapter down input gradient", m, inputs, rank, GemmPass::input_gradient);
  product("adapter down weight gradient", inputs, rank, m, GemmPass::weight_gradient);
  list.elementwise("adapter gradient sum", x.rows * inputs, kBf16 + kBf16 + kBf16);
}

}  // namespace

ExpertShard::ExpertShard(const Block& b, std::int64_t tokens_) {
  const LayerSetting& s = b.setting;
  const Experts& x = b.shape.experts;
  const double capacity = s.software.moe_expert_capacity_factor;
  const auto times = [](std::int64_t n, double factor) {
    return factor == 1 ? n : static_cast<std::int64_t>(std::ceil(static_cast<double>(n) * factor));
  };
  tokens = s.experts_apart ? s.rows(tokens_) : tokens_;
  sent = times(tokens * x.num_experts_per_tok, capacity > 0 ? capacity : 1);
  rows = sent;
  experts = x.num_experts;
  width = ceil_div(x.moe_intermediate_size, s.tp());
  if (!s.experts_apart) return;
  const bool uneven = capacity == 0 && s.expert_group.ranks > 1;
  rows = times(sent, uneven ? s.software.moe_load_imbalance : 1) * s.expert_tp_group.ranks;
  experts = ceil_div(x.num_experts, s.expert_group.ranks);
  width = ceil_div(x.moe_intermediate_size, s.expert_tp_group.ranks);
}

ExpertLinears::ExpertLinears(const Block& b) {
  const std::int64_t h = b.shape.hidden_size;
  const std::int64_t shared =
      ceil_div(b.shape.experts.shared_expert_intermediate_size, b.setting.tp());
  router = {"router", "router input gradient", "router weight gradient", h,
            b.shape.experts.num_experts};
  shared_up = {"shared expert up", "shared expert up input gradient",
               "shared expert up weight gradient", h, gate_of(b) * shared};
  shared_down = {"shared expert down", "shared expert down input gradient",
                 "shared expert down weight gradient", shared, h};
  const Adapters& a = b.shape.adapters;
  shared_up.adapter_rank = a.up ? a.lora_rank : 0;
  shared_down.adapter_rank = a.down ? a.lora_rank : 0;
}

namespace {

// Quantised products take blocks of rows: each expert's are copied to start at one, and back behind
// the last (Transformer Engine's Fp8Padding); a fused MLP takes them as they come, and HybridEP
// lays them out so when it permutes them (pad_multiple, Megatron-Core 0.16).
void pad(KernelList& list, const Block& b, const ExpertShard& x, std::string_view name) {
  const bool padded = b.setting.experts_apart &&
                      b.setting.software.moe_token_dispatcher == TokenDispatcher::hybridep;
  if (b.setting.quantises() && !fused(b) && !padded)
    list.elementwise(name, x.rows * b.shape.hidden_size, kBf16 + kBf16);
}

}  // namespace

bool waits_for_counts(const Block& b) {
  const Software& software = b.setting.software;
  return b.shape.experts.num_experts > 0 && software.moe_expert_capacity_factor == 0 &&
         !software.cuda_graphs;
}

void enter_graph(KernelList& list, const Block& b, std::int64_t tokens, int tensors, bool graph) {
  list.in_graph(false);
  if (graph)
    list.small_kernels("copy into graph", tensors, b.setting.rows(tokens) * b.shape.hidden_size,
                       kBf16 + kBf16);
  list.in_graph(graph);
}

void expert_mlps_forward(KernelList& list, const Block& b, const ExpertShard& x) {
  const std::int64_t h = b.shape.hidden_size;
  pad(list, b, x, "pad rows");
  quantise(list, b, x, "quantise input", h);
  grouped_forward(list, b, x, "experts up", h, gate_of(b) * x.width);
  if (adapted(b, b.shape.adapters.up)) grouped_adapter_forward(list, b, x, h, gate_of(b) * x.width);
  if (!fused(b)) {
    activation_forward(list, b.setting, b.shape.gated_mlp, b.shape.linear_bias, x.rows * x.width);
    quantise(list, b, x, "quantise input", x.width);
  }
  grouped_forward(list, b, x, "experts down", x.width, h);
  if (adapted(b, b.shape.adapters.down)) grouped_adapter_forward(list, b, x, x.width, h);
  pad(list, b, x, "unpad rows");
}

void expert_mlps_backward(KernelList& list, const Block& b, const ExpertShard& x) {
  const std::int64_t h = b.shape.hidden_size;
  pad(list, b, x, "pad rows");
  quantise(list, b, x, "quantise gradient", h);
  grouped_backward(list, b, x, "experts down input gradient", "experts down weight gradient",
                   x.width, h);
  if (adapted(b, b.shape.adapters.down)) grouped_adapter_backward(list, b, x, x.width, h);
  if (!fused(b)) {
    activation_backward(list, b.setting, b.shape.gated_mlp, b.shape.linear_bias, x.rows * x.width);
    quantise(list, b, x, "quantise gradient", gate_of(b) * x.width);
  }
  grouped_backward(list, b, x, "experts up input gradient", "experts up weight gradient", h,
                   gate_of(b) * x.width);
  if (adapted(b, b.shape.adapters.up))
    grouped_adapter_backward(list, b, x, h, gate_of(b) * x.width);
  pad(list, b, x, "unpad rows");
}

void experts_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  if (s.experts_apart) return parallel_experts_forward(list, b, tokens);
  const ExpertShard x(b, tokens);
  const std::int64_t h = b.shape.hidden_size;
  router_forward(list, b, s.rows(tokens));
  list.in_graph(false);
  dispatch_bookkeeping(list, b, s.rows(tokens), false);
  if (waits_for_counts(b)) list.wait_for_counts();
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, s.activation(tokens * h));
  list.memory("permute", MemoryOp::embedding, tokens + x.rows, h, kBf16);
  expert_mlps_forward(list, b, x);
  list.memory("unpermute", MemoryOp::embedding, tokens + x.rows, h, kBf16);
  if (b.shape.experts.shared_expert_intermediate_size > 0) {
    shared_experts_forward(list, b, tokens);
    list.elementwise("add shared expert", tokens * h, kBf16 + kBf16 + kBf16);
  }
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                  s.activation(tokens * h));
}

void expert_activation_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const ExpertShard x(b, tokens);
  activation_forward(list, b.setting, b.shape.gated_mlp, b.shape.linear_bias, x.rows * x.width);
}

// Split over tp as any MLP where experts are apart; otherwise tokens are gathered already, and the
// sum over ranks is that of the experts.
void shared_experts_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const ExpertLinears linears(b);
  const std::int64_t shared = linears.shared_down.inputs;
  if (shared == 0) return;
  if (s.experts_apart)
    column_forward(list, s, linears.shared_up, tokens);
  else
    whole_forward(list, s, linears.shared_up, tokens);
  activation_forward(list, s, b.shape.gated_mlp, false, tokens * shared);
  if (s.experts_apart)
    row_forward(list, s, linears.shared_down, tokens);
  else
    whole_forward(list, s, linears.shared_down, tokens);
}

void experts_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  if (s.experts_apart) return parallel_experts_backward(list, b, tokens);
  const ExpertShard x(b, tokens);
  const ExpertLinears linears(b);
  const std::int64_t h = b.shape.hidden_size, shared = linears.shared_down.inputs;
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, s.activation(tokens * h));
  if (shared > 0) {
    whole_backward(list, s, linears.shared_down, tokens);
    activation_backward(list, s, b.shape.gated_mlp, false, tokens * shared);
    whole_backward(list, s, linears.shared_up, tokens);
  }
  list.memory("unpermute backward", MemoryOp::embedding, tokens + x.rows, h, kBf16);
  expert_mlps_backward(list, b, x);
  list.memory("permute backward", MemoryOp::embedding, tokens + x.rows, h, kBf16);
  if (shared > 0) list.elementwise("add shared expert gradient", tokens * h, kBf16 + kBf16 + kBf16);
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                  s.activation(tokens * h));
  enter_graph(list, b, tokens, 2, s.software.cuda_graph_router);  // of tokens, and past experts
  router_backward(list, b, s.rows(tokens));
}

}  // namespace mllmsim::costs
