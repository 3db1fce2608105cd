// Experts on ranks of their own, by hand: 16 tokens of 64 values, 2 of 8 experts for each, experts
// of 32 values, 1 us per byte on the wire.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/world/rank_parameters.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

Model expert_model() {
  Model m = gpt(3, 64, 4, 1000);
  Transformer& t = m.llm.blocks;
  t.norm = Norm::rms_norm;
  t.gated_mlp = t.rotary = true;
  t.qkv_bias = t.linear_bias = false;
  t.experts = {8, 2, 32, 0};
  return m;
}

Parallelism experts_over(int ep, int etp, int tp = 1) {
  Parallelism p = tensor_parallel(tp, tp > 1);
  p.data_parallel_size = 4;
  p.expert_model_parallel_size = ep;
  p.expert_tensor_parallel_size = etp;
  return p;
}

struct ExpertBlock {
  Model model = expert_model();
  SimpleCosts kernels;
  LayerCost cost;

  explicit ExpertBlock(const Parallelism& p, Software software = flash()) {
    kernels.collective_seconds_per_byte = 1e-6;
    software.host_time_per_kernel = software.host_time_per_expert_kernel = {};
    ClusterSpec cluster;
    LayerCosts costs(model, p, software, kernels, cluster);
    cost = costs.cost(kLlmBlock, text(16, 1), Recompute::none);
  }

  std::int64_t ran(const Gemm& g) const { return std::ranges::count(kernels.gemms, g); }
  // Of all kernels of this name, forward and backward.
  double bytes(std::string_view name) const {
    Time sum{};
    for (const auto* list : {&cost.forward, &cost.backward})
      for (const TimedKernel& k : *list)
        if (k.name.starts_with(name)) sum += k.time;
    return to_seconds(sum).value * 1e6;
  }
};

Software dispatching(TokenDispatcher how) {
  Software s = flash();
  s.moe_token_dispatcher = how;
  return s;
}

// 32 rows leave a rank and as many arrive: 16 for each of its 2 experts.
TEST(ExpertParallel, ARankComputesItsOwnExperts) {
  const ExpertBlock block(experts_over(4, 1));
  EXPECT_EQ(block.ran({16, 2 * 32, 64, GemmPass::forward, 2, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(block.ran({32, 64, 16, GemmPass::weight_gradient, 2, NumberFormat::bf16, true}), 1);
}

// There and back, forward and backward: 4 times 32 rows of 64 values of 2 bytes; a probability of 4
// bytes for each there, and its gradient back.
TEST(ExpertParallel, RowsTravelOnceForEachExpert) {
  const ExpertBlock block(experts_over(4, 1));
  EXPECT_NEAR(block.bytes("ep all-to-all"), 4 * 32 * 64 * 2, 0.01);
  EXPECT_NEAR(block.bytes("ep probabilities"), 2 * 32 * 4, 0.01);
}

// 2 of 8 experts on 4 ranks of 2 miss a rank in 15 of 28 ways: 4 x 13/28 ranks for a token, 29 (of
// 29.7) copies of 16 tokens. HybridEP sends the probabilities of all 8 experts with each, and their
// gradients back; before, all ranks gather which of 8 experts each of 16 tokens goes to, a byte
// each.
TEST(ExpertParallel, TokensTravelOnceToEachRank) {
  const auto sent = [](TokenDispatcher how) {
    const ExpertBlock block(experts_over(4, 1), dispatching(how));
    return block.bytes("ep dispatch") + block.bytes("ep combine");
  };
  EXPECT_NEAR(sent(TokenDispatcher::deepep), 4 * 29 * 64 * 2, 0.01);
  EXPECT_NEAR(sent(TokenDispatcher::hybridep), 4 * 29 * 64 * 2 + 2 * 29 * 8 * 4, 0.01);
  const ExpertBlock block(experts_over(4, 1), dispatching(TokenDispatcher::hybridep));
  EXPECT_NEAR(block.bytes("ep routing map"), 4 * 16 * 8, 0.01);
}

// Two tp ranks route 8 tokens each, 16 rows; two etp ranks gather each other's and halve experts.
TEST(ExpertParallel, ExpertTensorRanksGatherRows) {
  const ExpertBlock block(experts_over(2, 2, 2));
  EXPECT_NEAR(block.bytes("ep all-to-all"), 4 * 16 * 64 * 2, 0.01);
  EXPECT_NEAR(block.bytes("etp all-gather"), 2 * 32 * 64 * 2, 0.01);
  EXPECT_EQ(block.ran({8, 2 * 16, 64, GemmPass::forward, 4, NumberFormat::bf16, true}), 1);
}

// The busiest rank gets half more: 48 rows, 24 for each of its experts.
TEST(ExpertParallel, AllWaitForTheBusiestRank) {
  Software s = flash();
  s.moe_load_imbalance = 1.5;
  const ExpertBlock block(experts_over(4, 1), s);
  EXPECT_EQ(block.ran({24, 2 * 32, 64, GemmPass::forward, 2, NumberFormat::bf16, true}), 1);
}

// An expert of every kind on a rank: 3 x 64 x 32 values each, 2 of 8; router, attention and norms
// on all.
TEST(ExpertParallel, ARankHoldsItsShareOfExperts) {
  const Model m = expert_model();
  const RankParameters n = rank_parameters(m, kLlmBlock, experts_over(4, 1));
  EXPECT_EQ(n.experts, 2 * 3 * 64 * 32);
  EXPECT_EQ(n.dense, parameters(m, kLlmBlock) - 8 * 3 * 64 * 32);
}

// Nothing is known to be hidden unless the software overlaps; then, of exchanges that take far
// longer, as much as the other pass computes, its attention not counted.
TEST(ExpertParallel, ExchangesHideBesideAnotherPassOnlyIfAsked) {
  EXPECT_EQ(totals(ExpertBlock(experts_over(4, 1)).cost).forward.beside_other_pass, Time{});
  Software s = flash();
  s.overlap_moe_expert_parallel_comm = true;
  const ExpertBlock block(experts_over(4, 1), s);
  Time backward{};
  for (const TimedKernel& k : block.cost.backward)
    if (!k.communication && k.name != "attention backward") backward += k.time;
  const Time hidden = totals(block.cost).forward.beside_other_pass;
  EXPECT_NEAR(static_cast<double>(hidden.value), static_cast<double>(backward.value), 2);
}

// One graph of attention and router reads the block's input; backwards the gradients of what the
// tokens became and of what goes past the experts. Without graphs nothing is copied.
TEST(ExpertParallel, GraphsCopyWhatTheyRead) {
  const auto copies = [](bool attention, bool router) {
    Software s = flash();
    s.cuda_graph_attention = attention;
    s.cuda_graph_router = router;
    const ExpertBlock block(experts_over(4, 1), s);
    std::pair<int, int> launched{};
    for (const TimedKernel& k : block.cost.forward)
      if (k.name == "copy into graph") launched.first += k.launches;
    for (const TimedKernel& k : block.cost.backward)
      if (k.name == "copy into graph") launched.second += k.launches;
    return launched;
  };
  EXPECT_EQ(copies(false, false), std::pair(0, 0));
  EXPECT_EQ(copies(true, false), std::pair(1, 1));
  EXPECT_EQ(copies(false, true), std::pair(1, 2));
  EXPECT_EQ(copies(true, true), std::pair(1, 2));
}

// Of one rank with etp = tp, kernels are those of a block without any of it.
TEST(ExpertParallel, OneRankChangesNothing) {
  const auto times = [](const Parallelism& p) {
    std::vector<Time> out;
    for (const TimedKernel& k : ExpertBlock(p).cost.forward) out.push_back(k.time);
    return out;
  };
  EXPECT_EQ(times(experts_over(1, 2, 2)), times(experts_over(1, 0, 2)));
}

}  // namespace
}  // namespace mllmsim
