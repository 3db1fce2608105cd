// Cross-attention, resamplers, pooling and parallel branches, by hand on blocks of 64 values, 16
// tokens and a picture that is 10 tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

constexpr double kWide = 64, kQueries = 16, kKeys = 10;

// Three Llama-like blocks of 4 heads of 16, an MLP of 128; the second sees the picture.
Model crossing() {
  Model m = llama_like();
  Transformer cross = m.llm.blocks;
  cross.cross_attention = cross.gated_branches = cross.qk_norm_per_head = true;
  m.llm.other_blocks = {{cross}, {0, 1, 0}};
  Encoder e;
  e.blocks = gpt_blocks(1, 32, 4);
  e.blocks.causal = false;
  e.tokens_per_tile = 12;
  e.output_tokens_per_tile = 10;
  e.projector_sizes = {32, 64};
  m.encoders = {e};
  return m;
}

MicroBatch one_picture() {
  MicroBatch mb;
  mb.encoders = {TokenBatch{{{12, 1}}}};
  mb.llm.groups = {{16, 1, 10}};
  mb.samples = 1;
  return mb;
}

constexpr Layer llm_block(std::uint32_t i) { return {LayerKind::block, 1, i}; }

struct Crossed {
  Model model;
  SimpleCosts kernels;
  LayerCosts costs;
  const LayerCost& cost;

  Crossed(Model m, const Layer& layer, const MicroBatch& mb, int tp = 1)
      : model(std::move(m)),
        costs(model, tensor_parallel(tp), flash(), kernels, {}),
        cost(costs.cost(layer, mb, Recompute::none)) {}

  std::int64_t ran(const Gemm& g) const { return std::ranges::count(kernels.gemms, g); }
  static std::int64_t collectives(const std::vector<TimedKernel>& list) {
    return std::ranges::count_if(list, [](const TimedKernel& k) { return k.communication; });
  }
};

// Queries (and the output) of 16 tokens, keys and values of 10.
TEST(CrossAttention, MakesKeysOfImageTokens) {
  const Crossed run(crossing(), llm_block(1), one_picture());
  EXPECT_EQ(run.ran({16, 64, 64}), 2);
  EXPECT_EQ(run.ran({10, 128, 64}), 1);
  EXPECT_EQ(run.ran({10, 64, 128, GemmPass::input_gradient}), 1);
  EXPECT_EQ(run.ran({64, 128, 10, GemmPass::weight_gradient}), 1);
}

// The embedding holds what all blocks cross to, 64 values of 2 B for each key, of its own
// micro-batch: another with as many tokens has 25 keys.
TEST(CrossAttention, EmbeddingsHoldTheKeysOfTheirMicroBatch) {
  const Layer embedding{LayerKind::embedding, 1, 0};
  Crossed run(crossing(), embedding, one_picture());
  MicroBatch more = one_picture();
  more.llm.groups.front().cross_keys = 25;
  const Bytes first = run.costs.total(embedding, one_picture(), Recompute::none).saved;
  EXPECT_EQ(run.cost.saved, first);
  EXPECT_EQ(run.costs.total(embedding, more, Recompute::none).saved - first, Bytes{15 * 64 * 2});
  EXPECT_EQ(run.costs.cost(embedding, more, Recompute::none).saved - first, Bytes{15 * 64 * 2});
}

// 6 FLOPs for 16 tokens and q, output and MLP, for 10 and keys and values; 12 for each of 16 x 10
// pairs and 64 values of heads.
TEST(CrossAttention, CountsItsFlops) {
  const Crossed run(crossing(), llm_block(1), one_picture());
  EXPECT_DOUBLE_EQ(run.cost.model_flops.value,
                   6 * kQueries * (2 * kWide * kWide + 3 * kWide * 128) +
                       6 * kKeys * 2 * kWide * kWide + 12 * kQueries * kKeys * kWide);
}

// Nobody wants gradients of image tokens if nothing that makes them is trained: 4 for each of 10.
TEST(CrossAttention, CountsNoFlopsBackToFrozenEncoders) {
  Model m = crossing();
  m.encoders.front().trained = m.encoders.front().projector_trained = false;
  const Crossed run(m, llm_block(1), one_picture());
  EXPECT_DOUBLE_EQ(run.cost.model_flops.value,
                   6 * kQueries * (2 * kWide * kWide + 3 * kWide * 128) +
                       4 * kKeys * 2 * kWide * kWide + 12 * kQueries * kKeys * kWide);
  EXPECT_EQ(run.ran({10, 64, 128, GemmPass::input_gradient}), 0);
}

// A token: inputs of both norms and of q, up, and the q norm, q and attention's output, what both
// gates scale, 2 h each; 4 per head; the MLP. A key: its norm's input, itself, its value.
TEST(CrossAttention, KeepsQueriesOfTokensAndKeysOfImages) {
  const Crossed run(crossing(), llm_block(1), one_picture());
  const double token = 9 * 2 * kWide + 4 * 4 + 3 * 2 * 128;
  EXPECT_EQ(static_cast<double>(run.cost.saved.value), kQueries * token + kKeys * 3 * 2 * kWide);
}

// Matrices as of self-attention; a norm of 16 for q and one for k; two gates.
TEST(CrossAttention, HasTwoGatesAndTwoSmallNorms) {
  const Model m = crossing();
  EXPECT_EQ(parameters(m, llm_block(1)) - parameters(m, llm_block(0)), 2 * 16 + 2);
}

TEST(CrossAttention, ImageTokensTravelUntilTheLastBlockThatSeesThem) {
  const Crossed run(crossing(), llm_block(1), one_picture());
  const auto values = [&](const Layer& l) {
    return run.costs.boundary(l, one_picture()).value / 2;
  };
  EXPECT_EQ(values({LayerKind::embedding, 1, 0}), (16 + 10) * 64);
  EXPECT_EQ(values(llm_block(0)), (16 + 10) * 64);
  EXPECT_EQ(values(llm_block(1)), 16 * 64);
}

// Nothing that is trained is in the stream before the first block that sees the picture.
TEST(CrossAttention, EndsTheBackwardOfAFrozenLlm) {
  Model m = crossing();
  m.llm.trained = false;
  const Crossed before(m, llm_block(0), one_picture()), at(m, llm_block(1), one_picture()),
      behind(m, llm_block(2), one_picture());
  EXPECT_TRUE(before.cost.backward.empty());
  EXPECT_EQ(at.ran({10, 64, 128, GemmPass::input_gradient}), 1);
  EXPECT_EQ(at.ran({64, 128, 10, GemmPass::weight_gradient}), 0);
  EXPECT_FALSE(behind.cost.backward.empty());
}

TEST(CrossAttention, WithoutAPictureHasNoKeys) {
  MicroBatch mb = one_picture();
  mb.encoders = {TokenBatch{}};
  mb.llm.groups = {{16, 1, 0}};
  const Crossed run(crossing(), llm_block(1), mb);
  EXPECT_DOUBLE_EQ(run.cost.model_flops.value,
                   6 * kQueries * (2 * kWide * kWide + 3 * kWide * 128));
}

// Packs of two sequences, one with a picture: totals() and cost() agree.
TEST(CrossAttention, TotalsOfAPackAreThoseOfItsKernels) {
  MicroBatch mb = one_picture();
  mb.llm.groups = {{16, 1, 10}, {8, 1, 0}};
  Crossed run(crossing(), llm_block(1), mb);
  const LayerTotals listed = totals(run.cost);
  const LayerTotals summed = run.costs.total(llm_block(1), mb, Recompute::none);
  EXPECT_EQ(summed.forward.time, listed.forward.time);
  EXPECT_EQ(summed.backward.time, listed.backward.time);
  EXPECT_EQ(summed.saved, listed.saved);
}

// 5 latents see the 20 tokens of a tile, two tiles: a matrix 32 -> 64 on 40 tokens, then one block
// with q and output on 10 latents, keys and values of 40 tokens and an MLP of 96.
TEST(Resampler, LeavesLatentsOfATile) {
  Model m = crossing();
  m.llm.other_blocks = {};
  Encoder& e = m.encoders[0];
  e.tokens_per_tile = 20;
  e.output_tokens_per_tile = 5;
  e.resampler.latents = 5;
  Transformer& r = e.resampler.blocks;
  r = gpt_blocks(1, 64, 4);
  r.causal = false;
  r.cross_attention = true;
  r.intermediate_size = 96;
  MicroBatch mb;
  mb.encoders = {TokenBatch{{{20, 2}}}};
  mb.llm.groups = {{16, 1}};
  const Layer projector{LayerKind::projector, 0, 0};
  const Crossed run(m, projector, mb);
  EXPECT_EQ(run.ran({40, 64, 32}), 1);
  EXPECT_EQ(run.ran({40, 128, 64}), 1);
  EXPECT_EQ(run.ran({10, 64, 64}), 2);
  EXPECT_DOUBLE_EQ(run.cost.model_flops.value,
                   6 * 40 * 32 * kWide + 6 * 10 * (2 * kWide * kWide + 2 * kWide * 96) +
                       6 * 40 * 2 * kWide * kWide + 12 * 2 * 5 * 20 * kWide);
  EXPECT_EQ(run.costs.boundary(projector, mb).value, 2 * 2 * 5 * 64);
}

// Both branches are summed over ranks at once, and one norm serves both.
TEST(ParallelResidual, ReducesOnce) {
  Model serial = gpt(1, 64, 4, 1000), parallel = serial;
  parallel.llm.blocks.parallel_residual = parallel.llm.blocks.shared_norm = true;
  const Crossed one(parallel, kLlmBlock, text(16, 1), 2), two(serial, kLlmBlock, text(16, 1), 2);
  EXPECT_EQ(Crossed::collectives(one.cost.forward), 1);
  EXPECT_EQ(Crossed::collectives(two.cost.forward), 2);
  EXPECT_EQ(parameters(serial, kLlmBlock) - parameters(parallel, kLlmBlock), 2 * 64);
  EXPECT_DOUBLE_EQ(one.cost.model_flops.value, two.cost.model_flops.value);
}

}  // namespace
}  // namespace mllmsim
