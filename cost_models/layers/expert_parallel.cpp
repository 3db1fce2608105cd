// Experts on ranks of their own (Megatron's expert_model_parallel_size and
// expert_tensor_parallel_size): a rank routes the tokens it has, sends each to the ranks of its
// experts, computes those it has on what arrives, and sends results back.
//
//   alltoall   permute [tokens -> rows by rank], all-to-all of the rows, [all-gather over etp],
//              sort [by expert, if a rank has several], experts, and all of it backwards; ranks
//              tell each other beforehand how many rows come
//   deepep, hybridep
//              dispatch [every token once to each of the ranks that it goes to], permute [what
//              arrived -> rows by expert], experts, unpermute, combine
//
// Of n experts on ep ranks, k of them for each token, a token goes to
//   ep (1 - C(n - n/ep, k) / C(n, k))
// ranks on average, as every rank is missed with that probability by an even choice.
//
// Probabilities travel with the rows, and their gradients back: one per row in an all-to-all of
// their own (alltoall), those of all experts in an NVLink domain with each token (hybridep);
// deepep's, of the chosen ones, are part of what was measured.
//
// A backward of a dispatch is a combine of gradients, and the other way round. Shared experts are
// split over tp as any MLP; with moe_shared_expert_overlap exchanges run beside them.
//
// Replicas whose micro-batches differ send as if those of their expert group were alike. Left out:
// choices limited to groups of experts (DeepSeek), which keep tokens on fewer nodes.
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

constexpr std::int64_t kProbability = 4;  // bytes

// Of `parts` equal parts of all experts, those that a token goes to.
double parts_of_token(const Experts& x, std::int64_t parts) {
  const double n = static_cast<double>(x.num_experts), part = n / static_cast<double>(parts);
  double missed = 1;
  for (std::int64_t i = 0; i < x.num_experts_per_tok; ++i)
    missed *= std::max(0.0, n - part - static_cast<double>(i)) / (n - static_cast<double>(i));
  return static_cast<double>(parts) * (1 - missed);
}

class Exchange {
 public:
  Exchange(KernelList& list, const Block& block, const ExpertShard& shard)
      : list_(list), b_(block), x_(shard) {}

  // From tokens where they are to rows of experts. `gradients`: of what combine() returned.
  void dispatch(bool gradients) {
    if (!by_rows()) {
      list_.exchange(gradients ? "ep dispatch of gradients" : "ep dispatch",
                     exchange(false, !gradients));
      return permute(gradients ? "unpermute backward" : "permute", arriving());
    }
    if (!gradients && s().software.moe_expert_capacity_factor == 0)
      list_.exchange("ep row counts",
                     {CollectiveOp::all_gather, Bytes{ep() * b_.shape.experts.num_experts * kInt64},
                      s().expert_group});
    permute_sent(gradients ? "unpermute backward" : "permute");
    all_to_all(gradients ? "ep all-to-all of gradients" : "ep all-to-all", s().activation(h()));
    if (!gradients) probabilities();
    between_experts_tp(CollectiveOp::all_gather);
    sort("sort by expert");
  }

  // The way back.
  void combine(bool gradients) {
    if (!by_rows()) {
      permute(gradients ? "permute backward" : "unpermute", arriving());
      return list_.exchange(gradients ? "ep combine of gradients" : "ep combine",
                            exchange(true, gradients));
    }
    sort("sort by rank");
    between_experts_tp(CollectiveOp::reduce_scatter);
    all_to_all(gradients ? "ep all-to-all of gradients" : "ep all-to-all", s().activation(h()));
    if (gradients) probabilities();
    permute_sent(gradients ? "permute backward" : "unpermute");
  }

 private:
  const LayerSetting& s() const { return b_.setting; }
  std::int64_t ep() const { return s().expert_group.ranks; }
  std::int64_t h() const { return b_.shape.hidden_size; }
  bool by_rows() const { return s().software.moe_token_dispatcher == TokenDispatcher::alltoall; }

  // Tokens of all ranks that arrive at one: as many as it sends, on average.
  std::int64_t arriving() const {
    const double each = parts_of_token(b_.shape.experts, ep());
    const double uneven =
        static_cast<double>(x_.rows) / static_cast<double>(x_.sent * s().expert_tp_group.ranks);
    return static_cast<std::int64_t>(static_cast<double>(x_.tokens) * each * uneven);
  }
  TokenExchange exchange(bool combine, bool with_probabilities) const {
    const std::int64_t nodes = s().expert_group.nodes;
    const bool hybrid = s().software.moe_token_dispatcher == TokenDispatcher::hybridep;
    const std::int64_t probabilities =
        hybrid && with_probabilities ? b_.shape.experts.num_experts / nodes * kProbability : 0;
    return {
        combine,
        hybrid,
        x_.tokens,
        s().activation(h()).value + probabilities,
        static_cast<double>(arriving()) / static_cast<double>(std::max<std::int64_t>(1, x_.tokens)),
        parts_of_token(b_.shape.experts, nodes) * static_cast<double>(nodes - 1) /
            static_cast<double>(nodes),
        s().expert_group,
        hybrid ? s().software.moe_hybridep_num_sms : 0};
  }

  void permute(std::string_view name, std::int64_t tokens) {
    list_.memory(name, MemoryOp::embedding, tokens + x_.rows, h(), kBf16);
  }
  void permute_sent(std::string_view name) {
    list_.memory(name, MemoryOp::embedding, x_.tokens + x_.sent, h(), kBf16);
  }
  void sort(std::string_view name) {
    if (x_.experts > 1 && ep() > 1)
      list_.memory(name, MemoryOp::embedding, x_.rows, h(), kBf16 + kBf16);
  }
  void all_to_all(std::string_view name, Bytes row) {
    list_.exchange(name, {CollectiveOp::all_to_all, row * (x_.rows / s().expert_tp_group.ranks),
                          s().expert_group});
  }
  void probabilities() { all_to_all("ep probabilities", Bytes{kProbability}); }
  void between_experts_tp(CollectiveOp op) {
    list_.exchange(op == CollectiveOp::all_gather ? "etp all-gather" : "etp reduce-scatter",
                   {op, s().activation(x_.rows * h()), s().expert_tp_group});
  }

  KernelList& list_;
  const Block& b_;
  const ExpertShard& x_;
};

}  // namespace

void parallel_experts_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const ExpertShard x(b, tokens);
  const ExpertLinears linears(b);
  const std::int64_t h = b.shape.hidden_size, shared = linears.shared_down.inputs;
  router_forward(list, b, x.tokens);
  Seconds beside{};
  if (shared > 0) {
    const std::size_t first = list.size();
    shared_experts_forward(list, b, tokens);
    beside = list.computing(first);
  }
  list.in_graph(false);
  dispatch_bookkeeping(list, b, x.tokens, false);
  const std::size_t from = list.size();
  if (waits_for_counts(b)) list.wait_for_counts();
  Exchange exchange(list, b, x);
  exchange.dispatch(false);
  expert_mlps_forward(list, b, x);
  exchange.combine(false);
  if (s.software.moe_shared_expert_overlap)
    list.hide_exchanges(from, beside, slowdown_beside_exchange(s));
  if (shared > 0) list.elementwise("add shared expert", x.tokens * h, kBf16 + kBf16 + kBf16);
}

void parallel_experts_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const ExpertShard x(b, tokens);
  const ExpertLinears linears(b);
  const std::int64_t h = b.shape.hidden_size, shared = linears.shared_down.inputs;
  Seconds beside{};
  if (shared > 0) {
    const std::size_t first = list.size();
    row_backward(list, s, linears.shared_down, tokens);
    activation_backward(list, s, b.shape.gated_mlp, false, tokens * shared);
    column_backward(list, s, linears.shared_up, tokens);
    beside = list.computing(first);
  }
  const std::size_t from = list.size();
  Exchange exchange(list, b, x);
  exchange.dispatch(true);
  expert_mlps_backward(list, b, x);
  exchange.combine(true);
  dispatch_bookkeeping(list, b, x.tokens, true);
  if (s.software.moe_shared_expert_overlap)
    list.hide_exchanges(from, beside, slowdown_beside_exchange(s));
  if (shared > 0)
    list.elementwise("add shared expert gradient", x.tokens * h, kBf16 + kBf16 + kBf16);
  enter_graph(list, b, tokens, 2, s.software.cuda_graph_router);  // of tokens, and past experts
  router_backward(list, b, x.tokens);
}

}  // namespace mllmsim::costs
