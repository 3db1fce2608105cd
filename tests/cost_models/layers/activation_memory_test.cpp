#include <gtest/gtest.h>

#include "cost_models/layers/layer_costs.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double saved(const Model& model, int tp, bool sequence_parallel, const Software& software,
             const MicroBatch& mb, Recompute recompute, Layer layer = kLlmBlock) {
  SimpleCosts kernels;
  LayerCosts costs(model, tensor_parallel(tp, sequence_parallel), software, kernels, {});
  return static_cast<double>(costs.cost(layer, mb, recompute).saved.value);
}

// Korthikanti et al. 2022, Figure 1: the 22B model, micro-batch 4, tp 8, on one pipeline stage.
TEST(ActivationMemory, ReproducesKorthikantiFigure1For22B) {
  const Model model = gpt(48, 6144, 64);
  const MicroBatch mb = text(2048, 4);
  EXPECT_DOUBLE_EQ(48 * saved(model, 8, false, megatron_2022(), mb, Recompute::none) / kGiB, 59.25);
  EXPECT_DOUBLE_EQ(48 * saved(model, 8, true, megatron_2022(), mb, Recompute::selective) / kGiB,
                   9.5625);
}

// GPT-3 on 8 stages, interleaved 3 times:
// the first stage keeps 1 + 7/24 times all 96 layers' worth.
TEST(ActivationMemory, ReproducesKorthikantiFigure1For175B) {
  const Model model = gpt(96, 12288, 96);
  const MicroBatch mb = text(2048, 1);
  const double layers = 96 * (1 + 7.0 / 24);
  EXPECT_NEAR(layers * saved(model, 8, false, megatron_2022(), mb, Recompute::none) / kGiB,
              66.84375, 1e-9);
  EXPECT_NEAR(layers * saved(model, 8, true, megatron_2022(), mb, Recompute::selective) / kGiB,
              12.3515625, 1e-9);
}

// s b h (10 + 24/t + 5 a s / (h t)) with every factor different.
TEST(ActivationMemory, FollowsKorthikantiTable2AtAnyShape) {
  const double s = 512, b = 3, h = 1024, a = 16, t = 4;
  const double expected = s * b * h * (10 + 24 / t + 5 * a * s / (h * t));
  EXPECT_EQ(saved(gpt(1, 1024, 16), 4, false, megatron_2022(), text(512, 3), Recompute::none),
            expected);
}

TEST(ActivationMemory, FullRecomputeKeepsTheInputShardedBySequenceParallel) {
  const Model model = gpt(1, 1024, 16);
  const double input = 2.0 * 512 * 1024;
  EXPECT_EQ(saved(model, 4, false, megatron_2022(), text(512, 1), Recompute::full), input);
  EXPECT_EQ(saved(model, 4, true, megatron_2022(), text(512, 1), Recompute::full), input / 4);
}

// No probabilities (5 a s / h), no masks (2): 34 - 2 bytes, and 4 per head for the log-sum-exp.
TEST(ActivationMemory, FlashAttentionKeepsALogSumExpInsteadOfProbabilities) {
  const double tokens = 512, h = 1024, heads = 16;
  EXPECT_EQ(saved(gpt(1, 1024, 16), 1, false, flash(), text(512, 1), Recompute::none),
            tokens * (32 * h + 4 * heads));
}

// InternLM2-20B, tp 2, sequence parallel, 16-bit values per token and rank:
//   norm inputs and GEMM inputs   4 h/2
//   q and attention output        2 h/2
//   k and v                       h/6 each /2
//   gate, up and product          3 f/2
// and 24 heads' log-sum-exp in fp32.
TEST(ActivationMemory, GroupedQueriesAndGatedMlp) {
  const double h = 6144, f = 16384;
  const double values = 4 * h / 2 + 2 * h / 2 + 2 * h / 6 / 2 + 3 * f / 2;
  EXPECT_EQ(saved(internvl(), 2, true, flash(), images(9, 4096), Recompute::none,
                  {LayerKind::block, 1, 0}),
            4096 * (2 * values + 4 * 24));
}

// 9,225 tokens at tp 2:
//   two norm inputs, qkv and mlp inputs, two layer-scale inputs   6 h, since tiles of 1,025 tokens
//                                                                 are not split over ranks
//   q, k, v before and after their norm and the output            6 * 13 * 128 with 13 heads
//   GELU input and output                                         2 * 4 h/2
// About 0.8 GB; OmniBal's free-memory table implies 0.5 GB per layer.
TEST(ActivationMemory, InternVitBlock) {
  const double h = 3200, tokens = 9225;
  const double expected = 2 * tokens * (6 * h + 6 * 13 * 128 + 4 * h) + 4 * 13 * tokens;
  const double bytes = saved(internvl(), 2, true, flash(), images(9, 4096), Recompute::none,
                             {LayerKind::block, 0, 0});
  EXPECT_EQ(bytes, expected);
}

TEST(ActivationMemory, FrozenEncoderKeepsNothing) {
  Model model = internvl();
  model.encoders[0].trained = false;
  EXPECT_EQ(
      saved(model, 2, true, flash(), images(9, 4096), Recompute::none, {LayerKind::block, 0, 0}),
      0);
}

// A frozen block that passes gradients on keeps no GEMM inputs but what attention and activations
// read, in bytes: norm inputs 4 h; q, k, v and output 8 h; GELU input 8 h; log-sum-exp.
TEST(ActivationMemory, FrozenLlmBehindTrainedEncoderKeepsNoGemmInputs) {
  Model model = gpt(1, 1024, 16);
  model.encoders = {internvl().encoders};
  model.encoders[0].projector_sizes = {12800, 1024};
  model.llm.trained = false;
  EXPECT_EQ(
      saved(model, 1, false, flash(), images(1, 512), Recompute::none, {LayerKind::block, 1, 0}),
      512 * (20.0 * 1024 + 4 * 16));
}

// Korthikanti et al. 2022, section 4.3: 4 s b h / t (1 + v / h) for final norm, logits and loss.
TEST(ActivationMemory, HeadKeepsFp32Logits) {
  const double s = 2048, h = 6144, v = 51200, t = 8;
  EXPECT_EQ(saved(gpt(48, 6144, 64), 8, true, megatron_2022(), text(2048, 1), Recompute::none,
                  {LayerKind::head, 0, 0}),
            4 * s * h / t * (1 + v / h));
}

// Korthikanti et al. 2022, Table 2, per s h: 10 + 24/t + 5 a s / (h t) = 10 + 6 + 10 bytes stay.
// Selective recompute drops the attention's 10, full recompute all but the input's 2, which comes
// back; the attention's when the backward has given back what it kept of the second half of the
// block: norm and MLP input, inner values twice, a mask, 2 + 2 + 2 + 2 + 1. Beside it the gradients
// of the residual stream and of 4 h / t inner values: 2 + 2 bytes.
TEST(ActivationMemory, RecomputeBringsBackWhatItDropped) {
  SimpleCosts kernels;
  const Model model = gpt(1, 1024, 16);
  LayerCosts costs(model, tensor_parallel(4), megatron_2022(), kernels, {});
  const auto kept_and_back = [&](Recompute r) {
    const LayerCost& cost = costs.cost(kLlmBlock, text(512, 1), r);
    return std::pair{cost.saved.value / (512 * 1024), cost.working.value / (512 * 1024)};
  };
  EXPECT_EQ(kept_and_back(Recompute::none), std::pair(26L, 4L));
  EXPECT_EQ(kept_and_back(Recompute::selective), std::pair(16L, 5L));
  EXPECT_EQ(kept_and_back(Recompute::full), std::pair(2L, 28L));
}

// A head of 1,000 words and 100 values, in bf16, over two ranks with sequence parallelism: where a
// fused loss left the logits' gradient in their place, the input gathered (40 x 100), its gradient
// before and after it is scattered (40 and 20 x 100) and that of the weights (512 x 100).
TEST(ActivationMemory, TheHeadsBackwardMakesGradientsOfItsInputAndWeights) {
  Model model = gpt(1, 100, 4);
  model.llm.vocab_size = 1000;
  Software software = flash();
  software.fused_cross_entropy = true;
  const auto working = [&](bool trained) {
    model.llm.trained = trained;
    SimpleCosts kernels;
    return LayerCosts(model, tensor_parallel(2, true), software, kernels, {})
        .cost({LayerKind::head, 0}, text(40, 1), Recompute::none)
        .working.value;
  };
  EXPECT_EQ(working(true), 2 * 100 * (40 + 40 + 20 + 512));
  software.memory.head_weight_gradient = false;
  EXPECT_EQ(working(true), 2 * 100 * (40 + 40 + 20));
  // With Megatron's own loss the softmax in fp32 is gone by then: 4 bytes of each of 40 x 512
  // logits, more than their gradient's 2 and all that. What is left is those 2 beside the softmax.
  software.fused_cross_entropy = false;
  EXPECT_EQ(working(true), 2 * 40 * 512);
}

// Ulysses and gathered keys keep attention's output twice, a ring once: 64 of 128 tokens, 64 values
// in bf16.
TEST(ActivationMemory, AttentionsOutputIsKeptTwiceWhereItIsCutAnewOverContextRanks) {
  const Model model = gpt(1, 64, 4);
  const auto kept = [&](CpCommType type) {
    Parallelism p;
    p.context_parallel_size = 2;
    p.cp_comm_type = type;
    SimpleCosts kernels;
    return LayerCosts(model, p, flash(), kernels, {})
        .cost(kLlmBlock, text(128, 1), Recompute::none)
        .saved.value;
  };
  EXPECT_EQ(kept(CpCommType::a2a) - kept(CpCommType::p2p), 2 * 64 * 64);
  EXPECT_EQ(kept(CpCommType::all_gather) - kept(CpCommType::p2p), 2 * 64 * 64);
}

// Three heads of one sequence are no multiple of the four matrices that the fused softmax takes at
// once, four are: PyTorch's keeps its output in fp32, 4 bytes of each of 3 x 64 x 64 scores.
TEST(ActivationMemory, WhereTheFusedSoftmaxDoesNotApplyItsOutputIsKeptInFp32) {
  const auto kept = [&](std::int64_t matrices) {
    Software software = megatron_2022();
    software.dropout = false;
    software.fused_softmax_matrices = matrices;
    return saved(gpt(1, 96, 3), 1, false, software, text(64, 1), Recompute::none);
  };
  EXPECT_EQ(kept(4) - kept(3), 4.0 * 3 * 64 * 64);
}

}  // namespace
}  // namespace mllmsim
