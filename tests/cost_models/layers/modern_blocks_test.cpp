// Experts, latent attention, windows, adapters and what else the blocks of recent models have, by
// hand on blocks of 64 values and 16 tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/world/rank_parameters.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

constexpr double kH = 64, kTokens = 16;

struct OneLayer {
  Model model;
  SimpleCosts kernels;
  LayerCosts costs;
  const LayerCost& cost;

  explicit OneLayer(Model m, int tp = 1, bool sp = false, Layer layer = kLlmBlock)
      : model(std::move(m)),
        costs(model, tensor_parallel(tp, sp), flash(), kernels, {}),
        cost(costs.cost(layer, text(16, 1), Recompute::none)) {}

  std::int64_t ran(const Gemm& g) const { return std::ranges::count(kernels.gemms, g); }
  std::int64_t weight_gradients() const {
    return std::ranges::count_if(kernels.gemms,
                                 [](const Gemm& g) { return g.pass == GemmPass::weight_gradient; });
  }
};

double flops_of(const Model& m) { return OneLayer(m).cost.model_flops.value; }
double attention_flops(double wide) { return 3 * 4 * kTokens * kTokens * 4 * wide; }

// 16 tokens to 2 of 8 experts each: 32 rows, 4 per expert, all experts in one launch.
TEST(Experts, MultiplyTheirRowsInOneLaunch) {
  const OneLayer run(with_experts());
  EXPECT_EQ(run.ran({16, 8, 64}), 1);  // the router
  EXPECT_EQ(run.ran({4, 2 * 32, 64, GemmPass::forward, 8, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(run.ran({4, 64, 32, GemmPass::forward, 8, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(run.ran({4, 32, 64, GemmPass::input_gradient, 8, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(run.ran({32, 64, 4, GemmPass::weight_gradient, 8, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(run.ran({16, 2 * 48, 64}), 1);  // the shared expert sees all tokens
  EXPECT_EQ(run.ran({16, 64, 48}), 1);
}

TEST(Experts, AreSplitByTensorParallelismAndItsSumsAreThoseOfAnMlp) {
  const OneLayer run(with_experts(), 2, true), dense(llama_like(), 2, true);
  EXPECT_EQ(run.ran({4, 32, 64, GemmPass::forward, 8, NumberFormat::bf16, true}), 1);
  EXPECT_EQ(run.ran({8, 8, 64}), 1);  // the router sees a rank's own rows
  const auto communications = [](const std::vector<TimedKernel>& list) {
    return std::ranges::count_if(list, [](const TimedKernel& k) { return k.communication; });
  };
  EXPECT_EQ(communications(run.cost.forward), communications(dense.cost.forward));
}

// 6 tokens (attention 4 h^2, two experts and the shared one 3 h (64 + 48), router 8 h).
TEST(Experts, CountTheFlopsOfTheExpertsATokenIsSentTo) {
  EXPECT_DOUBLE_EQ(
      flops_of(with_experts()),
      6 * kTokens * (4 * kH * kH + 3 * kH * (2 * 32 + 48) + 8 * kH) + attention_flops(16));
}

// All experts, 3 h 32 each, are held; norms 2 h.
TEST(Experts, HoldAllTheirParameters) {
  EXPECT_EQ(parameters(with_experts(), kLlmBlock),
            4 * 64 * 64 + 8 * 3 * 64 * 32 + 3 * 64 * 48 + 8 * 64 + 2 * 64);
  // With tp 2 the router and nothing else is whole on each rank.
  EXPECT_EQ(parameters_per_rank(with_experts(), kLlmBlock, 2),
            (4 * 64 * 64 + 8 * 3 * 64 * 32 + 3 * 64 * 48 + 2 * 64) / 2 + 8 * 64);
}

// Bytes per token: as a dense block up to the MLP's input 2 h 8 and 4 per head; then probabilities
// of 8 experts in fp32, two copies of the token, and what two experts and the shared one keep.
TEST(Experts, KeepTheirRows) {
  const double attention = 2 * kH * 8 + 4 * 4;
  const double experts = 4 * 8 + 2 * 2 * kH + 2 * 2 * (2 * 32) + 2 * 2 * 32;
  const double shared = 2 * 2 * 48 + 2 * 48;
  EXPECT_EQ(static_cast<double>(OneLayer(with_experts()).cost.saved.value),
            kTokens * (attention + experts + shared));
}

// GELU is a kernel of its own, and the router's probability multiplies what it made: that is kept,
// 2 bytes for each of 32 values of the two experts; there is no gate of 32 values, nor the shared
// expert's of 48.
TEST(Experts, AnActivationThatIsNotFusedWithItsProbabilityIsKept) {
  Model plain = with_experts();
  plain.llm.blocks.gated_mlp = false;
  const double gates = 2 * 2 * 32 + 2 * 48, kept = 2 * 2 * 32;
  EXPECT_EQ(static_cast<double>(OneLayer(with_experts()).cost.saved.value -
                                OneLayer(plain).cost.saved.value),
            kTokens * (gates - kept));
}

// q: 64 -> 32 -> 4 (16 + 8); k and v: 64 -> 24 + 8 -> 4 (16 + 16); out 4 * 16 -> 64.
TEST(LatentAttention, MakesQueriesKeysAndValuesFromLatents) {
  const OneLayer run(with_latents());
  EXPECT_EQ(run.ran({16, 32, 64}), 2);  // both latents are 32 wide
  EXPECT_EQ(run.ran({16, 96, 32}), 1);
  EXPECT_EQ(run.ran({16, 128, 24}), 1);
  EXPECT_EQ(run.ran({16, 64, 64}), 1);
  const double matrices = 64 * 32 + 64 * 32 + 32 * 96 + 24 * 128 + 64 * 64;
  EXPECT_EQ(static_cast<double>(parameters(with_latents(), kLlmBlock)),
            matrices + 32 + 24 + 3 * 64 * 128 + 2 * 64);
  // Scores over 24 values, sums over 16: as heads of 20.
  EXPECT_DOUBLE_EQ(flops_of(with_latents()),
                   6 * kTokens * (matrices + 3 * kH * 128) + attention_flops(20));
}

TEST(LatentAttention, RepeatsDownProjectionsOnEveryRank) {
  const std::int64_t whole = parameters(with_latents(), kLlmBlock), down = 2 * 64 * 32;
  EXPECT_EQ(parameters_per_rank(with_latents(), kLlmBlock, 2), down + (whole - down) / 2);
  const OneLayer run(with_latents(), 2);
  EXPECT_EQ(run.ran({16, 32, 64}), 2);
  EXPECT_EQ(run.ran({16, 48, 32}), 1);
  EXPECT_EQ(run.ran({16, 64, 24}), 1);
  EXPECT_EQ(run.ran({16, 64, 32}), 1);  // the attention's output, of two heads
}

// A window of 4 in 16: twice 4 * 16 - 4^2 / 2 pairs instead of 16^2.
TEST(Windows, CountThePairsTheyHave) {
  Model m = llama_like();
  const double full = flops_of(m);
  m.llm.blocks.sliding_window = 4;
  const double pairs = 2 * (4 * 16 - 4 * 4 / 2.0);
  EXPECT_DOUBLE_EQ(full - flops_of(m), 3 * 4 * (16 * 16 - pairs) * 4 * 16);
  m.llm.blocks.sliding_window = 16;
  EXPECT_DOUBLE_EQ(flops_of(m), full);
}

// Chunks of 6 in 16 are 6, 6 and 4.
TEST(Windows, ChunksAreSequencesOfTheirOwn) {
  Model m = llama_like();
  const double full = flops_of(m);
  m.llm.blocks.attention_chunk_size = 6;
  EXPECT_DOUBLE_EQ(full - flops_of(m), 3 * 4 * (16 * 16 - (36 + 36 + 16.0)) * 4 * 16);
}

// Blocks of two kinds are remembered apart.
TEST(Windows, OfSomeBlocksLeaveOthersAsTheyAre) {
  Model m = llama_like();
  Transformer windowed = m.llm.blocks;
  windowed.sliding_window = 4;
  m.llm.other_blocks = {{windowed}, {0, 1, 0}};
  SimpleCosts kernels;
  LayerCosts costs(m, tensor_parallel(1), flash(), kernels, {});
  const auto flops = [&](std::uint32_t i) {
    return costs.total({LayerKind::block, 0, i}, text(16, 1), Recompute::none).model_flops.value;
  };
  EXPECT_EQ(flops(0), flops(2));
  const double pairs = 2 * (4 * 16 - 4 * 4 / 2.0);
  EXPECT_DOUBLE_EQ(flops(0) - flops(1), 3 * 4 * (16 * 16 - pairs) * 4 * 16);
}

Model with_adapters(bool dora = false) {
  Model m = llama_like();
  m.llm.trained = false;
  m.llm.blocks.adapters = {4, dora, true, false, false, true};  // qkv and down
  return m;
}

// qkv: (64 + 192) r, down: (128 + 64) r. Base weights have no weight gradients, an adapter two.
TEST(Adapters, AreAllThatIsTrained) {
  EXPECT_EQ(trained_parameters_per_rank(with_adapters(), kLlmBlock, 1), 4 * (256 + 192));
  EXPECT_EQ(parameters(with_adapters()) - parameters(llama_like()), 3 * 4 * (256 + 192));
  EXPECT_EQ(trained_parameters_per_rank(with_adapters(true), kLlmBlock, 1),
            4 * (256 + 192) + 192 + 64);
  const OneLayer run(with_adapters());
  EXPECT_EQ(run.weight_gradients(), 4);
  EXPECT_EQ(run.ran({16, 4, 64}), 1);   // x A
  EXPECT_EQ(run.ran({16, 192, 4}), 1);  // (x A) B
  EXPECT_EQ(run.ran({4, 192, 16, GemmPass::weight_gradient}), 1);
  EXPECT_EQ(OneLayer(llama_like()).weight_gradients(), 4);
}

// Rank 4 beside every matrix: qkv (64 + 192), output (64 + 64), of the shared expert up (64 + 96)
// and down (48 + 64), and of each of 8 routed experts up (64 + 64) and down (32 + 64).
TEST(Adapters, AreBesideEveryExpertsMatrices) {
  Model m = with_experts();
  m.llm.trained = false;
  m.llm.blocks.adapters.lora_rank = 4;
  const std::int64_t dense = 4 * (256 + 128 + 160 + 112), routed = 8 * 4 * (128 + 96);
  EXPECT_EQ(trained_parameters_per_rank(m, kLlmBlock, 1), dense + routed);
  EXPECT_EQ(parameters(m) - parameters(with_experts()), 3 * (dense + routed));
  Parallelism apart;
  apart.data_parallel_size = apart.expert_model_parallel_size = 4;
  const RankParameters rank = trained_rank_parameters(m, kLlmBlock, apart);
  EXPECT_EQ(rank.dense, dense);
  EXPECT_EQ(rank.experts, routed / 4);

  // 16 tokens choose 2 of 8 experts each, so each has 4 rows; the last block is not the first, so
  // its adapters hand gradients on.
  const OneLayer run(m, 1, false, {LayerKind::block, 0, 1});
  const auto ran = [&](Gemm gemm) {
    gemm.batch = 8;
    gemm.grouped = true;
    return run.ran(gemm);
  };
  EXPECT_EQ(ran({4, 4, 64}), 1);  // up: x A ...
  EXPECT_EQ(ran({4, 64, 4}), 2);  // ... B, as wide as that of down
  EXPECT_EQ(ran({4, 4, 32}), 1);  // down: x A
  EXPECT_EQ(ran({64, 4, 4, GemmPass::weight_gradient}), 1);
  EXPECT_EQ(ran({4, 64, 4, GemmPass::weight_gradient}), 2);
  EXPECT_EQ(ran({32, 4, 4, GemmPass::weight_gradient}), 1);
  EXPECT_EQ(run.weight_gradients(), 2 * 6);  // none of the matrices themselves
}

// Of experts, their rows (2 a token) before up and before down, the shared expert's input and what
// it activates, and all that is between an adapter's halves.
TEST(Adapters, KeepTheInputsOfExperts) {
  const auto saved = [](std::int64_t rank, bool experts) {
    Model m = with_experts();
    m.llm.trained = false;
    m.llm.blocks.adapters = {rank, false, true, true, experts, experts};
    SimpleCosts kernels;
    return LayerCosts(m, tensor_parallel(1), flash(), kernels, {})
        .cost({LayerKind::block, 0, 1}, text(16, 1), Recompute::none)
        .saved.value;
  };
  EXPECT_EQ(saved(4, true) - saved(4, false),
            2 * 16 * (2 * (64 + 4) + 2 * (32 + 4) + (64 + 4) + (48 + 4)));
}

// A frozen block keeps no input of a matrix but where an adapter needs it, and 2 r a token between
// the adapter's halves: 2 (h + 128) + 2 * 2 r here.
TEST(Adapters, KeepTheInputsOfTheirMatrices) {
  Model frozen = llama_like();
  frozen.llm.trained = false;
  frozen.encoders.push_back({});  // with a trained projector, so that gradients pass
  frozen.encoders[0].blocks = gpt_blocks(1, 64, 4);
  frozen.encoders[0].projector_sizes = {64, 64};
  Model adapted = with_adapters();
  adapted.encoders = frozen.encoders;
  const Layer block{LayerKind::block, 1, 1};
  const auto saved = [&](const Model& m) {
    SimpleCosts kernels;
    LayerCosts costs(m, tensor_parallel(1), flash(), kernels, {});
    MicroBatch mb = text(16, 1);
    mb.encoders = {TokenBatch{}};
    return static_cast<double>(costs.cost(block, mb, Recompute::none).saved.value);
  };
  EXPECT_EQ(saved(adapted) - saved(frozen), kTokens * (2 * (kH + 128) + 2 * 2 * 4));
}

// Gradients go down to the first adapter and no further.
TEST(Adapters, EndTheBackwardAtTheFirstBlock) {
  const Model m = with_adapters();
  EXPECT_FALSE(needs_input_gradient(m, {LayerKind::embedding, 0, 0}));
  EXPECT_FALSE(needs_input_gradient(m, {LayerKind::block, 0, 0}));
  EXPECT_TRUE(needs_input_gradient(m, {LayerKind::block, 0, 1}));
  EXPECT_TRUE(needs_input_gradient(m, {LayerKind::head, 0, 0}));
  const OneLayer embedding(m, 1, false, {LayerKind::embedding, 0, 0});
  EXPECT_TRUE(embedding.cost.backward.empty());
}

// It has no gradient to add to the stream's, whichever block was costed before: one kernel less.
TEST(Adapters, LeaveTheFirstBlockWithLessToDo) {
  const Model m = with_adapters();
  for (const std::uint32_t asked_first : {0, 1}) {
    SimpleCosts kernels;
    LayerCosts costs(m, tensor_parallel(1), flash(), kernels, {});
    const auto backward = [&](std::uint32_t i) {
      return costs.total({LayerKind::block, 0, i}, text(16, 1), Recompute::none).backward.launches;
    };
    backward(asked_first);
    EXPECT_EQ(backward(1) - backward(0), 1);
    EXPECT_EQ(backward(1), backward(2));
    EXPECT_FALSE(costs.alike({LayerKind::block, 0, 0}, {LayerKind::block, 0, 1}));
  }
}

// Another prediction: a block that joins 2 h, and the head's logits once more.
TEST(MultiTokenPrediction, AddsABlockAndAHead) {
  Model m = llama_like();
  const Layer head{LayerKind::head, 0, 0};
  const double once = OneLayer(m, 1, false, head).cost.model_flops.value;
  Transformer next = m.llm.blocks;
  next.joins_next_token = true;
  m.llm.other_blocks = {{next}, {0, 0, 0, 1}};
  m.llm.blocks.num_hidden_layers = 4;
  m.llm.num_nextn_predict_layers = 1;
  EXPECT_DOUBLE_EQ(OneLayer(m, 1, false, head).cost.model_flops.value, 2 * once);
  const OneLayer run(m, 1, false, {LayerKind::block, 0, 3});
  EXPECT_EQ(run.ran({16, 64, 128}), 2);  // the join, and mlp down
  EXPECT_EQ(parameters(m, {LayerKind::block, 0, 3}) - parameters(m, {LayerKind::block, 0, 2}),
            2 * 64 * 64 + 2 * 64);
}

Model deepstack() {
  Model m = llama_like();
  Encoder e;
  e.blocks = gpt_blocks(4, 32, 4);
  e.tokens_per_output_token = 4;
  e.projector_sizes = {128, 128, 64};
  e.deepstack_features = 2;
  m.encoders = {e};
  return m;
}

// Two pictures of 16 and 48 tokens, 16 for the LLM; 24 in all. Features of two earlier blocks
// travel until LLM blocks 0 and 1 take them.
TEST(DeepStack, FeaturesGoAlongUntilTheyAreTaken) {
  const Model m = deepstack();
  SimpleCosts kernels;
  LayerCosts costs(m, tensor_parallel(1), flash(), kernels, {});
  MicroBatch mb = text(24, 1);
  mb.encoders = {TokenBatch{{{16, 1}, {48, 1}}}};
  const auto values = [&](const Layer& layer) { return costs.boundary(layer, mb).value / 2; };
  EXPECT_EQ(values({LayerKind::projector, 0, 0}), 3 * 16 * 64);
  EXPECT_EQ(values({LayerKind::embedding, 1, 0}), (24 + 2 * 16) * 64);
  EXPECT_EQ(values({LayerKind::block, 1, 0}), (24 + 16) * 64);
  EXPECT_EQ(values({LayerKind::block, 1, 1}), 24 * 64);
  EXPECT_EQ(parameters(m, {LayerKind::projector, 0, 0}), 3 * (2 * 128 + 129 * 128 + 129 * 64));
}

}  // namespace
}  // namespace mllmsim
