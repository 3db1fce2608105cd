// A GPU of 10 SMs and 10 TFLOP/s, so 1 TFLOP/s each, with one 128 x 128 tile at full rate:
// a tile over k = 1000 is 2 * 128 * 128 * 1000 FLOPs = 32.768 us. Memory is free.
#include "cost_models/kernels/gemm.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace costs;
namespace {

const Gpu kGemmGpu{{10e12}, {1e18}, {1e11}, 10};
constexpr double kGemmTileUs = 32.768;

GemmParameters one_tile() {
  GemmParameters p;
  p.launch = {5e-6};
  p.memory_efficiency = 1;
  p.derate_time = {1};
  p.tiles = {{128, 128, 1.0}};
  return p;
}

double us(const GemmParameters& p, const Gemm& g) { return gemm_time(p, kGemmGpu, g).value * 1e6; }

TEST(Gemm, OneWaveTakesOneTile) {
  EXPECT_NEAR(us(one_tile(), {1280, 128, 1000}), 5 + kGemmTileUs, 1e-6);
}

TEST(Gemm, OneTileMoreThanTheSmsTakesASecondWave) {
  EXPECT_NEAR(us(one_tile(), {1281, 128, 200}), 5 + 2 * kGemmTileUs / 5,
              1e-6);  // too short to split
}

TEST(Gemm, WithoutSharpnessHalfAWaveMoreTakesHalfAsLongAgain) {
  GemmParameters p = one_tile();
  p.sharpness = 0;
  EXPECT_NEAR(us(p, {15 * 128, 128, 1000}), 5 + 1.5 * kGemmTileUs, 1e-6);
}

TEST(Gemm, SplitKFillsIdleSms) {
  EXPECT_NEAR(us(one_tile(), {128, 128, 1000}), 5 + kGemmTileUs / 6, 1e-6);  // 1000 / 128 allows 6
}

TEST(Gemm, TheFasterTileWins) {
  GemmParameters p = one_tile();
  p.tiles.push_back({128, 256, 2.0});  // twice the work at twice the rate: half the tiles
  EXPECT_NEAR(us(p, {1280, 256, 1000}), 5 + kGemmTileUs, 1e-6);
}

TEST(Gemm, MemoryBoundProductTakesItsBytes) {
  const Gpu slow{{1e18}, {1e9}, {1e11}, 10};  // 1 GB/s
  const double bytes = 2 * 1000 * (1280 + 128) + 2 * 1280 * 128;
  EXPECT_NEAR(gemm_time(one_tile(), slow, {1280, 128, 1000}).value, 5e-6 + bytes / 1e9, 1e-9);
}

TEST(Gemm, DerateGrowsWithDuration) {
  GemmParameters p = one_tile();
  p.derate = 0.1;
  p.derate_time = {kGemmTileUs * 1e-6};  // as long as the product: half the derate
  EXPECT_NEAR(us(p, {1280, 128, 1000}), 5 + kGemmTileUs * 1.05, 1e-6);
}

TEST(Gemm, BatchMultipliesTiles) {
  EXPECT_NEAR(us(one_tile(), {128, 128, 1000, GemmPass::forward, 20}), 5 + 2 * kGemmTileUs, 1e-6);
}

GemmModel gemm_model() {
  GemmModel m;
  m.large = m.all = one_tile();
  m.large.provenance.source = m.all.provenance.source = Source::interpolated;
  m.largest_m = m.largest_n = m.largest_k = 4096;
  m.weight_gradient = {1.5, Source::estimate, ""};
  return m;
}

TEST(Gemm, AWeightGradientHasItsFactorAndItsSource) {
  const Cost forward = gemm_time(gemm_model(), kGemmGpu, {1280, 128, 1000});
  const Cost gradient =
      gemm_time(gemm_model(), kGemmGpu, {1280, 128, 1000, GemmPass::weight_gradient});
  EXPECT_NEAR(gradient.time / forward.time, 1.5, 1e-9);
  EXPECT_EQ(forward.source, Source::interpolated);
  EXPECT_EQ(gradient.source, Source::estimate);
}

// Under a power limit the clock has fallen however short a product is; one that was measured long
// enough to see it is not slowed twice.
TEST(Gemm, ThePowerLimitSlowsShortProductsAndNotLongOnesTwice) {
  GemmModel model = gemm_model();
  model.large.derate = model.all.derate = 0.2;
  model.large.derate_time = model.all.derate_time = Seconds{9e-3};
  const Gemm brief{1280, 128, 1000}, lasting{12800, 12800, 100000};
  const double launch = model.all.launch.value;
  const double busy = burst_time(model, kGemmGpu, brief).value - launch;
  const Seconds burst = burst_time(model, kGemmGpu, lasting);
  model.power = Factor{1.1, Source::interpolated, ""};
  EXPECT_NEAR((gemm_time(model, kGemmGpu, brief).time.value - launch) / busy, 1.1 * 1.02, 2e-3);
  EXPECT_DOUBLE_EQ(gemm_time(model, kGemmGpu, lasting).time.value, burst.value);
  EXPECT_DOUBLE_EQ(burst_time(model, kGemmGpu, lasting).value, burst.value);
}

// bf16 loses 1.1, fp8 1.05; mxfp8 has none of its own and takes bf16's. Without a derate busy times
// are these.
TEST(Gemm, AFormatMayLoseLessToThePowerLimit) {
  GemmModel model = gemm_model();
  model.power = Factor{1.1, Source::interpolated, ""};
  model.quantised = {{NumberFormat::fp8, model.large, model.all},
                     {NumberFormat::mxfp8, model.large, model.all}};
  model.quantised[0].power = Factor{1.05, Source::interpolated, ""};
  Gpu gpu = kGemmGpu;
  gpu.peak_fp8 = {20e12};
  const double launch = model.all.launch.value;
  const auto lost = [&](NumberFormat format) {
    Gemm g{1280, 128, 1000};
    g.format = format;
    return (gemm_time(model, gpu, g).time.value - launch) /
           (burst_time(model, gpu, g).value - launch);
  };
  EXPECT_NEAR(lost(NumberFormat::bf16), 1.1, 1e-9);
  EXPECT_NEAR(lost(NumberFormat::fp8), 1.05, 1e-9);
  EXPECT_NEAR(lost(NumberFormat::mxfp8), 1.1, 1e-9);
  model.power.reset();  // in what was measured as sustained
  EXPECT_NEAR(lost(NumberFormat::fp8), 1, 1e-9);
}

TEST(Gemm, BeyondTheMeasuredShapesIsAnEstimate) {
  EXPECT_EQ(gemm_time(gemm_model(), kGemmGpu, {8192, 1024, 1024}).source, Source::estimate);
}

// Heads of 108 and of 150 values are not aligned to 8: 0.8 of a sixteenth of 10 TFLOP/s. A matrix
// by itself is padded by who makes it.
TEST(Gemm, BatchesOfUnalignedMatricesDoWithoutTensorCores) {
  GemmModel model;
  model.large = model.all = one_tile();
  model.largest_m = model.largest_n = model.largest_k = 10000;
  const auto time = [&](std::int64_t k, std::int64_t batch) {
    return gemm_time(model, kGemmGpu, {1280, 128, k, GemmPass::forward, batch}).time.value;
  };
  const auto bare = [&](std::int64_t k, std::int64_t batch) {
    return gemm_time(model.all, kGemmGpu, {1280, 128, k, GemmPass::forward, batch}).value;
  };
  EXPECT_DOUBLE_EQ(time(104, 4), bare(104, 4));
  EXPECT_DOUBLE_EQ(time(108, 4), 2.0 * 1280 * 128 * 108 * 4 / 0.5e12);
  EXPECT_DOUBLE_EQ(time(150, 4), 2.0 * 1280 * 128 * 150 * 4 / 0.5e12);
  EXPECT_DOUBLE_EQ(time(150, 1), bare(150, 1));
}

// fp8 at twice the peak: half as long; its inputs are half as many bytes.
TEST(Gemm, AFormatHasItsOwnPeakAndBytes) {
  Gpu gpu = kGemmGpu;
  gpu.peak_fp8 = {20e12};
  Gemm g{1280, 128, 1000};
  g.format = NumberFormat::fp8;
  EXPECT_NEAR(gemm_time(one_tile(), gpu, g).value * 1e6, 5 + kGemmTileUs / 2, 1e-6);
  const Gpu slow{{1e18}, {1e9}, {1e11}, 10, "", {1e18}, {}};
  const double bytes = 1000 * (1280 + 128) + 2 * 1280 * 128;
  EXPECT_NEAR(gemm_time(one_tile(), slow, g).value, 5e-6 + bytes / 1e9, 1e-9);
}

TEST(Gemm, AFormatThatWasNotMeasuredTakesTheNearest) {
  Gpu gpu = kGemmGpu;
  gpu.peak_fp8 = gpu.peak_fp4 = {20e12};
  GemmModel model;
  model.large = model.all = one_tile();
  model.largest_m = model.largest_n = model.largest_k = 1 << 20;
  model.large.provenance.source = Source::interpolated;
  model.quantised = {{NumberFormat::fp8, model.large, model.all}};
  model.quantised[0].large.tiles[0].rate = 0.5;
  const auto cost = [&](NumberFormat format) {
    Gemm g{1280, 1280, 1024};
    g.format = format;
    return gemm_time(model, gpu, g);
  };
  EXPECT_EQ(cost(NumberFormat::fp8).source, Source::interpolated);
  // Half of twice the peak.
  EXPECT_NEAR(cost(NumberFormat::fp8).time / cost(NumberFormat::bf16).time, 1, 1e-6);
  EXPECT_EQ(cost(NumberFormat::mxfp8).source, Source::transferred);
  EXPECT_EQ(cost(NumberFormat::nvfp4).source, Source::estimate);
}

}  // namespace
}  // namespace mllmsim
