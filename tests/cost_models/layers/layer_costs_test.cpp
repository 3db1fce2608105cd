#include "cost_models/layers/layer_costs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

constexpr Layer kVitBlock{LayerKind::block, 0, 0};  // of internvl()
constexpr Layer kProjector{LayerKind::projector, 0, 0};
constexpr Layer kLmEmbedding{LayerKind::embedding, 1, 0};
constexpr Layer kLmBlock{LayerKind::block, 1, 0};
constexpr Layer kLmHead{LayerKind::head, 1, 0};

std::int64_t count(const std::vector<TimedKernel>& kernels, std::string_view name) {
  return std::count_if(kernels.begin(), kernels.end(),
                       [&](const TimedKernel& k) { return k.name == name; });
}

std::int64_t communications(const std::vector<TimedKernel>& kernels) {
  return std::count_if(kernels.begin(), kernels.end(),
                       [](const TimedKernel& k) { return k.communication; });
}

// y = x W is three GEMMs of equal FLOPs, on the shard of one rank.
TEST(LayerCosts, BlockRunsItsFourLinearsAsGemmsOfOneRank) {
  LayerFixture f(internvl(), 2, true, flash());
  f.costs.cost(kLmBlock, images(9, 4096), Recompute::none);
  const auto ran = [&](const Gemm& g) { return std::ranges::count(f.kernels.gemms, g) == 1; };
  EXPECT_TRUE(ran({4096, (24 + 2 * 4) * 128, 6144}));  // qkv: 24 query and 4 key-value heads
  EXPECT_TRUE(ran({4096, 6144, 24 * 128}));            // attention output
  EXPECT_TRUE(ran({4096, 2 * 8192, 6144}));            // gate and up
  EXPECT_TRUE(ran({4096, 6144, 8192}));                // down
  EXPECT_TRUE(ran({4096, 8192, 6144, GemmPass::input_gradient}));
  EXPECT_TRUE(ran({8192, 6144, 4096, GemmPass::weight_gradient}));
  EXPECT_EQ(f.kernels.gemms.size(), 12U);
}

// 25 heads at tp 2 become 26: 13 per rank.
TEST(LayerCosts, HeadsArePaddedToAMultipleOfTp) {
  LayerFixture f(internvl(), 2, true, flash());
  f.costs.cost(kVitBlock, images(1, 256), Recompute::none);
  EXPECT_EQ(f.kernels.gemms.front(), (Gemm{1025, 3 * 13 * 128, 3200}));
}

// 25 heads at tp 2, replicated: every rank has all of them, sums nothing over ranks behind the
// attention, and only the MLP's two GEMMs are halves.
TEST(LayerCosts, ReplicatedAttentionIsWholeOnEveryRank) {
  Model model = internvl();
  model.encoders[0].blocks.uneven_heads = UnevenHeads::replicate;
  LayerFixture f(model, 2, true, flash());
  const LayerCost& cost = f.costs.cost(kVitBlock, images(1, 256), Recompute::none);
  EXPECT_EQ(f.kernels.gemms[0], (Gemm{1025, 3 * 25 * 128, 3200}));
  EXPECT_EQ(f.kernels.gemms[1], (Gemm{1025, 3200, 3200}));
  EXPECT_EQ(f.kernels.gemms[2], (Gemm{1025, 6400, 3200}));
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 1);
}

// 1,025 tokens per tile do not split over 2 ranks, 1,024 do.
TEST(LayerCosts, TilesAreSplitOverRanksOnlyIfTheirTokensDivide) {
  Model model = internvl();
  const auto gathers = [&] {
    LayerFixture f(model, 2, true, flash());
    return count(f.costs.cost(kVitBlock, images(1, 256), Recompute::none).forward, "tp all-gather");
  };
  EXPECT_EQ(gathers(), 0);
  Software together = flash();
  together.sequence_parallel_over_tiles = true;
  LayerFixture padded(model, 2, true, together);
  EXPECT_EQ(
      count(padded.costs.cost(kVitBlock, images(1, 256), Recompute::none).forward, "tp all-gather"),
      2);
  model.encoders[0].tokens_per_tile = 1024;
  EXPECT_EQ(gathers(), 2);
}

TEST(LayerCosts, HeadsThatDoNotDivideAreTheUsersErrorUnlessPadded) {
  Model model = internvl();
  model.encoders[0].blocks.uneven_heads = UnevenHeads::refuse;
  const SimpleCosts kernels;
  EXPECT_THROW(LayerCosts(model, tensor_parallel(2), flash(), kernels, {}), UserError);
  EXPECT_NO_THROW(LayerCosts(model, tensor_parallel(1), flash(), kernels, {}));
}

// 8 key-value heads on 16 ranks: each rank holds a copy of one, and 3 of the 48 query heads.
TEST(LayerCosts, FewerKeyValueHeadsThanRanksAreCopied) {
  LayerFixture f(internvl(), 16, true, flash());
  f.costs.cost(kLmBlock, images(1, 1024), Recompute::none);
  EXPECT_EQ(f.kernels.gemms.front(), (Gemm{1024, (3 + 2) * 128, 6144}));
}

TEST(LayerCosts, OneRankDoesNotCommunicate) {
  LayerFixture f(internvl(), 1, true, flash());
  for (const Layer& layer : layers_of(f.model)) {
    const LayerCost& cost = f.costs.cost(layer, images(2, 1024), Recompute::full);
    EXPECT_EQ(communications(cost.forward) + communications(cost.backward), 0);
  }
}

// "Two all-gathers and two reduce-scatters in every layer's forward"; backward exposes the
// gathers of the output gradients, and hides the other four beside GEMMs.
TEST(LayerCosts, SequenceParallelBlockGathersAndScattersTwice) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, flash());
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp all-gather"), 2);
  EXPECT_EQ(count(cost.forward, "tp reduce-scatter"), 2);
  EXPECT_EQ(count(cost.backward, "tp all-gather"), 2);
}

// Gate and up projection apart: each gathers the input, and forwards multiply twice.
TEST(LayerCosts, AGateApartGathersForItself) {
  Software software = flash();
  software.joint_gate_up = false;
  LayerFixture f(internvl(), 4, true, software);
  const LayerCost& cost = f.costs.cost(kLmBlock, images(1, 4096), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp all-gather"), 3);
  EXPECT_EQ(count(cost.forward, "mlp up"), 2);
  EXPECT_EQ(count(cost.forward, "tp reduce-scatter"), 2);
}

// q, k and v apart: three gathers before attention; their three gradients of the input are added
// up. A model that has them in one matrix keeps it.
TEST(LayerCosts, QueryKeyAndValueApartGatherForThemselves) {
  Software software = flash();
  software.joint_qkv = false;
  Model model = internvl();
  LayerFixture f(model, 4, true, software);
  const LayerCost& cost = f.costs.cost(kLmBlock, images(1, 4096), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp all-gather"), 4);
  EXPECT_EQ(f.kernels.gemms[0], (Gemm{4096, 12 * 128, 6144}));
  EXPECT_EQ(f.kernels.gemms[1], (Gemm{4096, 2 * 128, 6144}));
  EXPECT_EQ(f.kernels.gemms[2], (Gemm{4096, 2 * 128, 6144}));
  EXPECT_EQ(count(cost.backward, "sum of input gradients"), 2);

  model.llm.blocks.packed_qkv = true;
  LayerFixture packed(model, 4, true, software);
  packed.costs.cost(kLmBlock, images(1, 4096), Recompute::none);
  EXPECT_EQ(packed.kernels.gemms[0], (Gemm{4096, 16 * 128, 6144}));
}

// Two norms of 6,144 weights in bf16; their second use is full recompute's.
TEST(LayerCosts, WeightsOfNormsAreAveragedBeforeEachUse) {
  Software software = flash();
  software.average_norm_weights = true;
  LayerFixture f(internvl(), 4, true, software);
  const LayerCost& cost = f.costs.cost(kLmBlock, images(1, 4096), Recompute::full);
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 2);
  EXPECT_EQ(count(cost.recompute, "tp all-reduce"), 2);
  EXPECT_EQ(count(cost.backward, "tp all-reduce"), 0);
}

TEST(LayerCosts, WithoutSequenceParallelABlockAllReducesTwice) {
  LayerFixture f(gpt(1, 1024, 16), 4, false, flash());
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 2);
  EXPECT_EQ(communications(cost.forward), 2);
}

// Communication much slower than GEMMs: of the all-reduce beside the mlp up weight gradient remains
// what the GEMM does not cover, slowed 1.25 times while NCCL holds SMs.
//   all-reduce   4096 * 1024 * 2 B * 1e-9 s/B                = 8,388,608 ns
//   GEMM         2 * 1024 * 1024 * 4096 FLOP * 1e-15 s/FLOP  = 8,589.93 ns, x 1.25 = 10,737.4 ns
TEST(LayerCosts, CommunicationBesideAGemmIsExposedBeyondIt) {
  LayerFixture f(gpt(1, 1024, 16), 4, false, flash());
  f.kernels.collective_seconds_per_byte = 1e-9;
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  const auto gemm = std::ranges::find(cost.backward, "mlp up weight gradient", &TimedKernel::name);
  ASSERT_NE(gemm, cost.backward.end());
  EXPECT_EQ(gemm->time, Time{10737});
  EXPECT_EQ((gemm + 1)->name, "tp all-reduce (exposed)");
  EXPECT_EQ((gemm + 1)->time, Time{8'388'608 - 10'737});
}

// Without overlap the forward's two all-reduces are followed by two whole ones in the backward.
TEST(LayerCosts, WithoutOverlapBackwardCommunicationIsExposed) {
  Software serial = flash();
  serial.overlap_tp_backward = false;
  LayerFixture f(gpt(1, 1024, 16), 4, false, serial);
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  EXPECT_EQ(count(cost.backward, "tp all-reduce"), 2);
}

// All-reduces apart, as in EasyLLM: a backward then shows its two as the forward shows its own two,
// of as many bytes. A block split over its sequence hides as much as ever.
TEST(LayerCosts, AllReducesMayBeExposedAlone) {
  const auto exposed = [](bool sequence_parallel, bool overlap, bool backward) {
    Software software = flash();
    software.overlap_tp_all_reduce = overlap;
    LayerFixture f(gpt(1, 1024, 16), 4, sequence_parallel, software);
    const LayerCost& cost = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
    return totals(backward ? cost.backward : cost.forward).communication;
  };
  EXPECT_EQ(exposed(false, false, true), exposed(false, false, false));
  EXPECT_LT(exposed(false, true, true), exposed(false, true, false));
  EXPECT_EQ(exposed(true, true, true), exposed(true, false, true));
}

// Sequence parallel: two gathers and two reductions forward, of as many bytes, all beside GEMMs in
// four pieces. Of a reduction one piece has nothing to hide behind, of a gather none.
TEST(LayerCosts, OverlapInForwardsLeavesAQuarterOfTheReductions) {
  Software overlapped = flash();
  overlapped.host_time_per_kernel = overlapped.host_time_per_expert_kernel = {0};
  LayerFixture whole(gpt(1, 1024, 16), 4, true, overlapped);
  overlapped.overlap_tp_forward = true;
  LayerFixture pieces(gpt(1, 1024, 16), 4, true, overlapped);
  const auto communication = [](LayerFixture& f) {
    f.kernels.collective_seconds_per_byte = 1e-13;  // so that every piece hides
    return totals(f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none).forward).communication;
  };
  EXPECT_NEAR(static_cast<double>(communication(pieces).value),
              static_cast<double>(communication(whole).value) / 8, 4);
}

// With more than one micro-batch, a block's gradients are added up by a kernel of its own.
TEST(LayerCosts, GradientsAreAddedByAKernelOfTheirOwnIfNotByGemms) {
  Software separate = flash();
  separate.grad_accumulation_bytes_per_parameter = 10;
  const auto additions = [&](std::int64_t batch) {
    LayerFixture f(gpt(1, 1024, 16), 4, false, separate, batch);
    return count(f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none).backward,
                 "gradient accumulation");
  };
  EXPECT_EQ(additions(1), 0);
  EXPECT_EQ(additions(2), 1);
}

// A frozen layer has no weight-gradient GEMM to hide its all-reduce beside.
TEST(LayerCosts, FrozenBlockPassesGradientsButMakesNone) {
  Model model = internvl();
  model.llm.trained = false;
  LayerFixture f(model, 2, false, flash());
  const LayerCost& cost = f.costs.cost(kLmBlock, images(9, 4096), Recompute::none);
  EXPECT_EQ(count(cost.backward, "qkv weight gradient"), 0);
  EXPECT_EQ(count(cost.backward, "qkv input gradient"), 1);
  EXPECT_EQ(count(cost.backward, "tp all-reduce"), 2);
}

TEST(LayerCosts, FrozenEncoderHasNoBackward) {
  Model model = internvl();
  model.encoders[0].trained = false;
  LayerFixture f(model, 2, true, flash());
  const LayerCost& cost = f.costs.cost(kVitBlock, images(9, 4096), Recompute::full);
  EXPECT_FALSE(cost.forward.empty());
  EXPECT_TRUE(cost.backward.empty());
  EXPECT_TRUE(cost.recompute.empty());
  EXPECT_FALSE(f.costs.cost(kProjector, images(9, 4096), Recompute::none).backward.empty());
}

TEST(LayerCosts, FullRecomputeRunsTheForwardAgain) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, megatron_2022());
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(512, 4), Recompute::full);
  EXPECT_EQ(totals(cost.recompute).time, totals(cost.forward).time);
  EXPECT_EQ(totals(cost.recompute).communication, totals(cost.forward).communication);
}

TEST(LayerCosts, SelectiveRecomputeRunsUnfusedAttentionAgain) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, megatron_2022());
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(512, 4), Recompute::selective);
  ASSERT_EQ(cost.recompute.size(), 5U);  // scores, softmax, dropout, context, its copy
  EXPECT_EQ(cost.recompute.front().name, "scores");
}

// Attention sees every length, GEMMs only their sum.
TEST(LayerCosts, PackedSequencesAttendOnlyWithinThemselves) {
  LayerFixture f(gpt(1, 1024, 16), 1, false, flash());
  const LayerCost whole = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  const LayerCost packed = f.costs.cost(kLlmBlock, text(1024, 4), Recompute::none);
  const double attention = 4.0 * 4096 * 4096 * 1024;
  EXPECT_EQ(totals(whole.forward).flops - totals(packed.forward).flops, Flops{0.75 * attention});
  EXPECT_EQ(whole.saved, packed.saved);
}

// Eager InternViT, 8 tiles on 2 ranks: four RMSNorms of six kernels instead of one each, and q, k
// and v copied twice. Backward, in bytes per value: a norm moves 60 and its weight's gradient 8
// instead of 6 in all; q, k and v are copied with 8, the context with 4. Two norms see 8,200 rows
// of 3,200 values (1,025 per tile cannot be split in two), two (of q and k) of 13 heads of 128.
TEST(LayerCosts, EagerKernelsAreMoreAndSlower) {
  Software eager;
  eager.fused_kernels = eager.fused_norms = false;
  LayerFixture f(internvl(), 2, true, flash());
  LayerFixture e(internvl(), 2, true, eager);
  const LayerCost& fused = f.costs.cost(kVitBlock, images(8, 4096), Recompute::none);
  const LayerCost& slow = e.costs.cost(kVitBlock, images(8, 4096), Recompute::none);
  EXPECT_EQ(count(fused.forward, "norm"), 4);
  EXPECT_EQ(count(slow.forward, "norm"), 4 * 6);
  EXPECT_EQ(count(slow.forward, "qkv layout"), 2);
  const double heads = 8200.0 * 13 * 128;
  const double bytes = 62 * (2 * 8200.0 * 3200 + 2 * heads) + 8 * 3 * heads + 4 * heads;
  const Time longer = totals(slow.backward).time - totals(fused.backward).time;
  EXPECT_NEAR(static_cast<double>(longer.value), bytes / 1000, 25);  // 1 ns per kB, each rounded
}

// Megatron (Narayanan et al. 2021, section 5.1, without recompute):
// 72 B s h^2 (1 + s / 6h) per layer and 6 B s h V for the logits, on all ranks together.
TEST(LayerCosts, ModelFlopsFollowMegatronsFormula) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, flash());
  const double b = 3, s = 512, h = 1024, v = 51200;
  EXPECT_DOUBLE_EQ(f.costs.cost(kLlmBlock, text(512, 3), Recompute::full).model_flops.value,
                   72 * b * s * h * h * (1 + s / (6 * h)));
  EXPECT_DOUBLE_EQ(
      f.costs.cost({LayerKind::head, 0, 0}, text(512, 3), Recompute::none).model_flops.value,
      6 * b * s * h * v);
}

// Of a frozen matrix only forward and input gradient count; with nothing trained before, forward.
TEST(LayerCosts, ModelFlopsCountOnlyPassesThatAreNeeded) {
  Model model = internvl();
  model.llm.trained = false;
  model.encoders[0].trained = false;  // the projector is trained
  LayerFixture f(model, 2, true, flash());
  const MicroBatch mb = images(9, 4096);
  const double logits = 2.0 * 4096 * 6144 * 92553;
  EXPECT_DOUBLE_EQ(f.costs.cost(kLmHead, mb, Recompute::none).model_flops.value, 2 * logits);
  const double matrices = 2.0 * 9225 * (4 * 3200.0 * 3200 + 2 * 3200.0 * 12800);
  const double attention = 9 * 4.0 * 1025 * 1025 * 3200;
  EXPECT_DOUBLE_EQ(f.costs.cost(kVitBlock, mb, Recompute::none).model_flops.value,
                   matrices + attention);
}

// Every kernel that executes FLOPs on the tp ranks together: the model's, plus the scores that
// flash attention's backward computes again (2.5 instead of 2 times its forward).
TEST(LayerCosts, ExecutedFlopsAreTheModelsPlusFlashRecomputation) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, flash());
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(512, 3), Recompute::none);
  const double executed = 4 * (totals(cost.forward).flops + totals(cost.backward).flops).value;
  EXPECT_DOUBLE_EQ(executed, cost.model_flops.value + 0.5 * 3 * 4.0 * 512 * 512 * 1024);
}

TEST(LayerCosts, VocabularyIsPaddedTo128RowsARank) {
  LayerFixture f(internvl(), 2, true, flash());
  f.costs.cost(kLmHead, images(1, 1024), Recompute::none);
  EXPECT_EQ(f.kernels.gemms.front(), (Gemm{1024, 362 * 128, 6144}));  // 92,553 / 256 = 361.5
}

// 9 tiles: 2,304 tokens through 12800 x 6144/2 columns, then 6144/2 rows x 6144, summed over ranks.
TEST(LayerCosts, TwoLayerProjectorIsSplitByColumnsThenRows) {
  LayerFixture f(internvl(), 2, true, flash());
  const LayerCost& cost = f.costs.cost(kProjector, images(9, 4096), Recompute::none);
  ASSERT_EQ(f.kernels.gemms.size(), 6U);
  EXPECT_EQ(f.kernels.gemms[0], (Gemm{2304, 3072, 12800}));
  EXPECT_EQ(f.kernels.gemms[1], (Gemm{2304, 6144, 3072}));
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 1);
}

TEST(LayerCosts, EmbeddingInsertsImageTokensBetweenSumAndSplit) {
  LayerFixture f(internvl(), 2, true, flash());
  const LayerCost& cost = f.costs.cost(kLmEmbedding, images(9, 4096), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 1);
  EXPECT_EQ(count(cost.forward, "insert image tokens"), 1);
  EXPECT_EQ(count(cost.backward, "gather image token gradients"), 1);
}

TEST(LayerCosts, EncoderRunsNothingWithoutTiles) {
  LayerFixture f(internvl(), 2, true, flash());
  for (const Layer& layer : {kVitBlock, kProjector}) {
    const LayerCost& cost = f.costs.cost(layer, images(0, 4096), Recompute::full);
    EXPECT_TRUE(cost.forward.empty() && cost.recompute.empty() && cost.backward.empty());
    EXPECT_EQ(cost.saved, Bytes{0});
  }
}

TEST(LayerCosts, TextOnlyEmbeddingIsReduceScattered) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, flash());
  const LayerCost& cost = f.costs.cost({LayerKind::embedding, 0, 0}, text(512, 1), Recompute::none);
  EXPECT_EQ(count(cost.forward, "tp reduce-scatter"), 1);
  EXPECT_EQ(count(cost.forward, "tp all-reduce"), 0);
}

// Papers: 56.3 MiB after a ViT layer, 27.0 after the projector, 48 after an LLM layer.
TEST(LayerCosts, BoundariesOfAFullPack) {
  LayerFixture f(internvl(), 2, true, flash());
  const MicroBatch mb = images(9, 4096);
  EXPECT_EQ(f.costs.boundary(kVitBlock, mb), Bytes{9 * 1025 * 3200 * 2});
  EXPECT_EQ(f.costs.boundary(kProjector, mb), Bytes{27 << 20});
  EXPECT_EQ(f.costs.boundary(kLmEmbedding, mb), Bytes{48 << 20});
  EXPECT_EQ(f.costs.boundary(kLmBlock, mb), Bytes{48 << 20});
  EXPECT_EQ(f.costs.boundary(kLmHead, mb), Bytes{0});
}

// What the first encoder projected travels along with the second encoder's activations.
TEST(LayerCosts, EarlierEncodersOutputsPassThroughLaterOnes) {
  Model model = internvl();
  model.encoders.push_back(model.encoders[0]);
  LayerFixture f(model, 2, true, flash());
  MicroBatch mb = images(9, 4096);
  mb.encoders.push_back({{{1025, 1}}});
  EXPECT_EQ(f.costs.boundary({LayerKind::block, 1, 0}, mb), Bytes{(27 << 20) + 1025 * 3200 * 2});
}

// Adam: gradient norm, clip, update, zero: 5 times 4 B;
// states read and written: 24 B; bf16 copy: 6 B.
TEST(LayerCosts, OptimizerMovesFiftyBytesAParameter) {
  LayerFixture f(gpt(1, 1024, 16), 1, false, flash());
  EXPECT_EQ(f.costs.optimizer_step(1'000'000, 1'000'000), Time{50'000});
}

// Two replicas that each update half of a million parameters (46 B each) hold all gradients: zeroed
// and divided by two, 3 times 4 B; parameters gathered into a buffer are copied out, 4 B.
TEST(LayerCosts, WholeGradientsAreZeroedAndScaledWhateverARankUpdates) {
  const Model model = gpt(1, 1024, 16);
  SimpleCosts kernels;
  Parallelism p{.data_parallel_size = 2, .zero_stage = 1, .global_batch_size = 2};
  Software software = flash();
  EXPECT_EQ(LayerCosts(model, p, software, kernels, {}).optimizer_step(500'000, 1'000'000),
            Time{23'000 + 12'000});
  software.copy_gathered_parameters = true;
  EXPECT_EQ(LayerCosts(model, p, software, kernels, {}).optimizer_step(500'000, 1'000'000),
            Time{23'000 + 12'000 + 4'000});
  software.grad_reduce_passes = 0;
  software.grads_start_empty = true;
  EXPECT_EQ(LayerCosts(model, p, software, kernels, {}).optimizer_step(500'000, 1'000'000),
            Time{23'000 + 4'000});
}

TEST(LayerCosts, BlocksOfAModuleAreAlikeAndComputedOnce) {
  LayerFixture f(gpt(48, 1024, 16), 4, true, flash());
  const LayerCost& first = f.costs.cost({LayerKind::block, 0, 0}, text(512, 1), Recompute::none);
  const LayerCost& last = f.costs.cost({LayerKind::block, 0, 47}, text(512, 1), Recompute::none);
  EXPECT_EQ(&first, &last);
}

// 4,096 tokens packed differently: attention is timed anew, the twelve GEMMs are not.
TEST(LayerCosts, NewPackWithKnownTokensOnlyTimesItsAttention) {
  LayerFixture f(gpt(1, 1024, 16), 4, true, flash());
  f.costs.cost(kLlmBlock, text(4096, 1), Recompute::none);
  f.costs.cost(kLlmBlock, text(1024, 4), Recompute::none);
  EXPECT_EQ(f.kernels.gemms.size(), 12U);
  EXPECT_EQ(f.kernels.attentions, 4);
}

// Far more packs than are remembered: the memo forgets, and computes the same again.
TEST(LayerCosts, ForgottenCostsComeBackTheSame) {
  LayerFixture f(gpt(1, 64, 1), 1, false, flash());
  const auto pack = [](std::int64_t i) {
    MicroBatch mb = text(i, 1);
    mb.llm.groups.push_back({10'000 - i, 1});
    return mb;
  };
  const LayerCost first = f.costs.cost(kLlmBlock, pack(1), Recompute::none);
  for (std::int64_t i = 2; i < 9'000; ++i) f.costs.cost(kLlmBlock, pack(i), Recompute::none);
  const int before = f.kernels.attentions;
  const LayerCost& again = f.costs.cost(kLlmBlock, pack(1), Recompute::none);
  EXPECT_EQ(f.kernels.attentions, before + 2);
  EXPECT_EQ(totals(again.backward).time, totals(first.backward).time);
}

}  // namespace
}  // namespace mllmsim
