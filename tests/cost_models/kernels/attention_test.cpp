// A GPU of one SM at 1 TFLOP/s with free memory: one head of 128 queries, 128 keys, head dim 64 is
// 4 * 128 * 128 * 64 FLOPs = 4.194304 us.
#include "cost_models/kernels/attention.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace costs;
namespace {

const Gpu kAttentionGpu{{1e12}, {1e18}, {1e11}, 1};
constexpr double kAttentionTileUs = 4.194304;

AttentionModel attention_model() {
  AttentionKernel kernel;
  kernel.head_dim = 64;
  kernel.causal = true;
  kernel.provenance.source = Source::interpolated;
  kernel.launch = {3e-6};
  kernel.rate = 1;
  kernel.norm = 200;  // in effect the larger of total and longest
  kernel.table = {0, 0, 15, 15, std::vector<double>(225, 0.0)};
  return {2, {kernel}, {2.5, Source::estimate, ""}, {{1, {2, Source::estimate, ""}}}};
}

Attention attention(std::vector<SequenceGroup> sequences, bool causal) {
  return {std::move(sequences), 2, 2, 64, causal, false};
}

double us(const Attention& a) {
  return attention_time(attention_model(), kAttentionGpu, a).time.value * 1e6;
}

TEST(Attention, FullAttentionIsSquareInLength) {  // 2 heads, 2 x 2 tiles
  EXPECT_NEAR(us(attention({{256, 1}}, false)), 3 + 2 * 4 * kAttentionTileUs, 1e-6);
}

// 8 tiles; behind the window of 256 keys a tile of 128 queries sees 3 tiles of keys: 1 + 2 + 6 * 3.
TEST(Attention, AWindowBoundsTheKeysOfATile) {
  Attention a = attention({{1024, 1}}, true);
  a.window = 256;
  EXPECT_NEAR(us(a), 3 + 2 * 21 * kAttentionTileUs, 1e-6);
  a.window = 1024;
  EXPECT_NEAR(us(a), 3 + 2 * 36 * kAttentionTileUs, 1e-6);
}

TEST(Attention, CausalSkipsTilesAboveTheDiagonal) {  // 2 heads, 1 + 2 tiles
  EXPECT_NEAR(us(attention({{256, 1}}, true)), 3 + 2 * 3 * kAttentionTileUs, 1e-6);
}

TEST(Attention, APackCostsTheSumOfItsSamplesAndOneLaunch) {
  EXPECT_NEAR(us(attention({{256, 1}, {128, 3}}, true)), 3 + 2 * (3 + 3) * kAttentionTileUs, 1e-6);
}

TEST(Attention, EqualSamplesMayBeGroupedOrNot) {
  EXPECT_NEAR(us(attention({{384, 2}}, true)), us(attention({{384, 1}, {384, 1}}, true)), 1e-9);
}

TEST(Attention, KeysWiderThanValuesTakeWhatWasMeasuredOfThem) {
  AttentionModel model = attention_model();
  Attention a = attention({{256, 1}}, true);
  const auto us_of = [&] { return attention_time(model, kAttentionGpu, a).time.value * 1e6; };
  const double even = us_of();
  a.wide_keys = true;
  EXPECT_DOUBLE_EQ(us_of(), even);  // not measured
  model.wide_keys = Factor{1.25, Source::measured, ""};
  model.wide_keys_backward = Factor{1.5, Source::measured, ""};
  EXPECT_DOUBLE_EQ(us_of(), 1.25 * even);
  a.backward = true;
  EXPECT_DOUBLE_EQ(us_of(), 1.5 * 2.5 * even);
}

TEST(Attention, UnmeasuredBackwardIsARatioAndAnEstimate) {
  Attention a = attention({{256, 1}}, true);
  const double forward = us(a);
  a.backward = true;
  const Cost backward = attention_time(attention_model(), kAttentionGpu, a);
  EXPECT_NEAR(backward.time.value * 1e6, 2.5 * forward, 1e-6);
  EXPECT_EQ(backward.source, Source::estimate);
}

// Ratios of 3 at 128 tokens and 2 at 512: 2.5 half way in log2, and no less beyond. Forward of 2
// heads: 3 us and 2 tiles; of 256 tokens 3 us and 2 * 3 tiles.
TEST(Attention, TheRatioOfBackwardMayDependOnTheLength) {
  AttentionModel model = attention_model();
  model.backward_by_length = {{128, 3}, {512, 2}};
  const auto backward = [&](std::vector<SequenceGroup> sequences) {
    Attention a = attention(std::move(sequences), true);
    a.backward = true;
    return attention_time(model, kAttentionGpu, a).time.value * 1e6;
  };
  EXPECT_NEAR(backward({{128, 1}}), 3 * (3 + 2 * kAttentionTileUs), 1e-6);
  EXPECT_NEAR(backward({{256, 1}}), 2.5 * (3 + 2 * 3 * kAttentionTileUs), 1e-6);
  EXPECT_NEAR(backward({{1024, 1}}), 2 * (3 + 2 * 36 * kAttentionTileUs), 1e-6);
  // A pack: each sample at its own length, the launch at the longest's.
  EXPECT_NEAR(backward({{256, 1}, {128, 1}}), 2.5 * 3 + (2.5 * 3 + 3 * 1) * 2 * kAttentionTileUs,
              1e-6);
}

// The kernel is of generation 2: 1 takes twice as long, a newer one is not known to be faster.
TEST(Attention, OlderGenerationsTakeLonger) {
  Attention a = attention({{256, 1}}, true);
  const double measured = us(a);
  a.generation = 1;
  EXPECT_NEAR(us(a), 2 * measured, 1e-6);
  EXPECT_EQ(attention_time(attention_model(), kAttentionGpu, a).source, Source::estimate);
  a.generation = 3;
  EXPECT_NEAR(us(a), measured, 1e-6);
}

TEST(Attention, SourceSaysWhatWasMeasured) {
  EXPECT_EQ(attention_time(attention_model(), kAttentionGpu, attention({{256, 1}}, true)).source,
            Source::interpolated);
  EXPECT_EQ(attention_time(attention_model(), kAttentionGpu, attention({{256, 1}}, false)).source,
            Source::estimate);
  Attention wide = attention({{256, 1}}, true);
  wide.head_dim = 128;
  EXPECT_EQ(attention_time(attention_model(), kAttentionGpu, wide).source, Source::transferred);
  EXPECT_EQ(
      attention_time(attention_model(), kAttentionGpu, attention({{1 << 20, 1}}, true)).source,
      Source::estimate);
}

TEST(Attention, NothingToAttendCostsNothing) { EXPECT_EQ(us(attention({}, true)), 0); }

TEST(AttentionTable, IsBilinearInsideAndConstantOutside) {
  const AttentionTable t{3, 1, 2, 2, {0.0, 0.2, 0.4, 0.6}};
  EXPECT_DOUBLE_EQ(t.at(3, 1), 0.0);
  EXPECT_DOUBLE_EQ(t.at(3.5, 1.5), 0.3);
  EXPECT_DOUBLE_EQ(t.at(9, 9), 0.6);
  EXPECT_DOUBLE_EQ(t.at(0, 0), 0.0);
}

}  // namespace
}  // namespace mllmsim
