// Recurrences in attention's place, and blocks with only one of both halves, by hand on blocks of
// 64 values and 16 tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/kernels/recurrence.hpp"
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim::recurrences {
using namespace costs;
namespace {

constexpr std::int64_t kTokens = 16;

// 2 key heads of 8, 4 value heads of 16: keys 16, values 64; projected 2 * 16 + 2 * 64 + 2 * 4.
Model with_delta() {
  Model m = llama_like();
  m.llm.blocks.recurrence = {RecurrenceRule::gated_delta, 4, 2, 8, 16, 4, 64};
  return m;
}
Model with_mamba() {  // projected 2 * 16 + 2 * 64 + 4
  Model m = with_delta();
  m.llm.blocks.recurrence.rule = RecurrenceRule::mamba2;
  m.llm.blocks.recurrence.chunk_size = 8;
  return m;
}
Model without_mlp(Model m) {
  m.llm.blocks.has_mlp = false;
  m.llm.blocks.intermediate_size = 0;
  return m;
}
Model without_mixer() {
  Model m = llama_like();
  m.llm.blocks.has_mixer = false;
  return m;
}

struct OneLayer {
  Model model;
  SimpleCosts kernels;
  LayerCosts costs;
  const LayerCost& cost;

  explicit OneLayer(Model m, int tp = 1)
      : model(std::move(m)),
        costs(model, tensor_parallel(tp), flash(), kernels, {}),
        cost(costs.cost(kLlmBlock, text(kTokens, 1), Recompute::none)) {}

  std::int64_t ran(const Gemm& g) const { return std::ranges::count(kernels.gemms, g); }
};

TEST(Recurrence, OfTheDeltaRuleHasOneMatrixForAllAndOneForItsOutput) {
  const OneLayer run(with_delta());
  EXPECT_EQ(run.ran({16, 168, 64}), 1);
  EXPECT_EQ(run.ran({16, 64, 64}), 1);
  EXPECT_EQ(run.kernels.attentions, 0);
  // Convolution of 4 tokens over 96 channels, decay and offset of 4 heads, a norm of 16.
  EXPECT_EQ(parameters(run.model, kLlmBlock),
            64 * 168 + 64 * 64 + 4 * 96 + 2 * 4 + 16 + 3 * 64 * 128 + 2 * 64);
}

// As the delta rule with one number per head less; the convolution has a bias, a head a skip, and
// the norm is as wide as all values.
TEST(Recurrence, OfMambaHasItsOwnSmallParameters) {
  EXPECT_EQ(parameters(with_mamba(), kLlmBlock),
            64 * 164 + 64 * 64 + 5 * 96 + 3 * 4 + 64 + 3 * 64 * 128 + 2 * 64);
}

TEST(Recurrence, IsSplitByHeads) {
  const OneLayer run(with_delta(), 2);
  EXPECT_EQ(run.ran({16, 84, 64}), 1);
  EXPECT_EQ(run.ran({16, 64, 32}), 1);
}

// 6 tokens times the matrices; the state of 8 x 16 in 4 heads is read, written and read: 6 FLOPs of
// each of its values, and twice that backward.
TEST(Recurrence, CountsItsStateTokenByToken) {
  const double matrices = 64.0 * 168 + 64 * 64 + 3 * 64 * 128;
  EXPECT_DOUBLE_EQ(OneLayer(with_delta()).cost.model_flops.value,
                   6 * kTokens * matrices + 3.0 * kTokens * 6 * 4 * 8 * 16);
}

// K 8, V 16, C 64: 2 C (3 K + 2 V) + 6 K V = 7,936 FLOPs per token and head, 512 of them from
// chunk to chunk; 12 C + 14 K + 12 V + 4 K V / C = 1,080 bytes. 128 tokens are two chunks.
TEST(Recurrence, RunsTheDeltaRuleInChunks) {
  const Recurrence r = with_delta().llm.blocks.recurrence;
  const ChunkedScan scan = chunked_scan(r, TokenBatch{{{128, 1}}}, false);
  EXPECT_DOUBLE_EQ(scan.products.value, 128.0 * 4 * 7936);
  EXPECT_DOUBLE_EQ(scan.stepwise.value, 128.0 * 4 * 512);
  EXPECT_EQ(scan.bytes.value, 128 * 4 * 1080);
  EXPECT_EQ(scan.steps, 2);
  // 2 C (8 K + 5 V) + 16 K V, of which 10 K V in two passes over the chunks.
  const ChunkedScan back = chunked_scan(r, TokenBatch{{{128, 1}}}, true);
  EXPECT_DOUBLE_EQ(back.products.value, 128.0 * 4 * (128 * 144 + 16 * 128));
  EXPECT_DOUBLE_EQ(back.stepwise.value, 128.0 * 4 * 1280);
  EXPECT_EQ(back.steps, 4);
}

// Sequences run beside each other: steps are those of the longest.
TEST(Recurrence, OfSeveralSequencesTakesTheStepsOfTheLongest) {
  const Recurrence r = with_delta().llm.blocks.recurrence;
  EXPECT_EQ(chunked_scan(r, TokenBatch{{{64, 3}, {100, 1}}}, false).steps, 2);
}

// 4 K V + C V for a head, 2 C K for a group; nothing goes from chunk to chunk but states.
TEST(Recurrence, RunsMambaInChunks) {
  const Recurrence r = with_mamba().llm.blocks.recurrence;
  const ChunkedScan scan = chunked_scan(r, TokenBatch{{{128, 1}}}, false);
  EXPECT_DOUBLE_EQ(scan.products.value, 128.0 * (4 * (4 * 128 + 8 * 16) + 2 * 2 * 8 * 8));
  EXPECT_EQ(scan.steps, 0);
  EXPECT_EQ(scan.bytes.value, 128 * (4 * (10 * 16 + 12 * 128 / 8) + 2 * (8 * 8 + 8 * 8)));
  EXPECT_TRUE(scan.mamba);
  EXPECT_FALSE(
      chunked_scan(with_delta().llm.blocks.recurrence, TokenBatch{{{128, 1}}}, false).mamba);
}

// Bytes per token: norm input and the projection's input 2 x 64; the convolution's input 96, query
// and key before (16 each) and after they are repeated for 4 heads (32 each), value 64, 64
// solutions per head, decay 6 bytes per head, gate, output and what the last matrix reads 64
// each; the MLP's half.
TEST(Recurrence, KeepsWhatItsBackwardReads) {
  const std::int64_t mixer = 2 * (2 * 64 + 96 + 2 * (16 + 32) + 64 + 4 * 64 + 3 * 64) + 6 * 4;
  const std::int64_t mlp = 2 * (2 * 64 + 2 * 128 + 128);
  EXPECT_EQ(OneLayer(with_delta()).cost.saved.value, kTokens * (mixer + mlp));
  // Mamba keeps its projection (164) and its output before and after the gate.
  const std::int64_t mamba = 2 * (2 * 64 + 164 + 3 * 64);
  EXPECT_EQ(OneLayer(with_mamba()).cost.saved.value, kTokens * (mamba + mlp));
}

TEST(HalfBlocks, HaveOneNormAndTheirOwnMatricesOnly) {
  EXPECT_EQ(parameters(without_mlp(with_mamba()), kLlmBlock),
            64 * 164 + 64 * 64 + 5 * 96 + 3 * 4 + 64 + 64);
  EXPECT_EQ(parameters(without_mixer(), kLlmBlock), 3 * 64 * 128 + 64);
  const OneLayer mlp(without_mixer());
  EXPECT_EQ(mlp.ran({16, 256, 64}), 1);
  EXPECT_EQ(mlp.ran({16, 192, 64}), 0);
  EXPECT_DOUBLE_EQ(mlp.cost.model_flops.value, 6.0 * kTokens * 3 * 64 * 128);
}

// Both halves of a block cost what the block does, but for rounding: each is bound by its launches.
TEST(HalfBlocks, AddUpToTheWhole) {
  const auto time = [](const Model& m) {
    const OneLayer run(m);
    return to_seconds(totals(run.cost.forward).time).value;
  };
  EXPECT_NEAR(time(without_mlp(llama_like())) + time(without_mixer()), time(llama_like()), 1e-8);
}

TEST(AttentionGate, IsAsWideAsTheQueries) {
  Model m = llama_like();
  m.llm.blocks.attention_gate = true;
  const OneLayer run(m), plain(llama_like());
  EXPECT_EQ(run.ran({16, 256, 64}), 2);  // queries, keys, values and gate; and the MLP's
  EXPECT_EQ(parameters(m, kLlmBlock) - parameters(llama_like(), kLlmBlock), 64 * 64);
  // The gate and the gated output.
  EXPECT_EQ(run.cost.saved.value - plain.cost.saved.value, kTokens * 2 * 2 * 64);
}

// 10 SMs at 1 TFLOP/s: 100 GFLOP at once are 10 ms, 50 from chunk to chunk 5 ms, or 1000 steps of
// 8 us; a backward at half the pace.
TEST(RecurrenceTime, IsTheLongerOfItsStepsAndTheirProducts) {
  RecurrenceModel model;
  model.flops_per_sm = {1e12};
  model.step = Seconds{8e-6};
  model.backward.value = 2;
  Gpu gpu;
  gpu.sms = 10;
  ChunkedScan scan{Flops{150e9}, Flops{50e9}, Bytes{0}, 100, false};
  const auto ms = [&](double memory) {
    return recurrence_time(model, gpu, scan, {Seconds{memory}}).time.value * 1e3;
  };
  EXPECT_NEAR(ms(0), 15, 1e-9);
  EXPECT_NEAR(ms(0.02), 20, 1e-9);
  scan.steps = 1000;
  EXPECT_NEAR(ms(0), 18, 1e-9);
  scan.backward = true;
  EXPECT_NEAR(ms(0), 30, 1e-9);
  // Mamba-2 has no steps of its own: 150 GFLOP are 15 ms, at 0.8 of the pace 18.75 ms.
  scan = {Flops{150e9}, Flops{0}, Bytes{0}, 0, false, true};
  model.mamba.value = 1.25;
  EXPECT_NEAR(ms(0), 18.75, 1e-9);
}

}  // namespace
}  // namespace mllmsim::recurrences
