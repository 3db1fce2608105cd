// Measurements made up from known parameters: the fit has to predict what it has not seen, and find
// the parameters where they can be told apart.
#include "cost_models/fit/fit.hpp"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/calibration/estimate.hpp"
#include "cost_models/fit/least_squares.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"

namespace mllmsim {
using namespace costs;
using namespace fit;
namespace {

const Gpu kGpu = gpu_of("A100-SXM4-80GB");

TEST(LeastSquares, FindsTheMinimumOfRosenbrocksValley) {
  LeastSquaresOptions options;
  options.outlier = 1e9;
  options.iterations = 200;
  options.difference = 1e-7;
  options.tolerance = 1e-14;
  const Eigen::VectorXd x = minimise(
      [](const Eigen::VectorXd& v) {
        return Eigen::VectorXd{{10 * (v[1] - v[0] * v[0]), 1 - v[0]}};
      },
      Eigen::VectorXd{{-1.2, 1.0}}, options);
  EXPECT_NEAR(x[0], 1, 1e-3);
  EXPECT_NEAR(x[1], 1, 1e-3);
}

TEST(LeastSquares, OneWildPointHardlyMovesTheFit) {
  const double data[] = {1.0, 1.01, 0.99, 1.0, 5.0};
  const Eigen::VectorXd x = minimise(
      [&](const Eigen::VectorXd& v) {
        Eigen::VectorXd r(5);
        for (int i = 0; i < 5; ++i) r[i] = v[0] - data[i];
        return r;
      },
      Eigen::VectorXd{{2.0}});
  EXPECT_NEAR(x[0], 1, 0.03);
}

std::vector<GemmMeasurement> gemms(const GemmParameters& truth) {
  std::vector<GemmMeasurement> raw;
  for (const std::int64_t m : {512, 1000, 2048, 4096, 9000})
    for (const std::int64_t n : {512, 1536, 3072, 6144, 12288})
      for (const std::int64_t k : {512, 1024, 3000, 6144, 16384}) {
        GemmMeasurement g;
        g.kernel = {m, n, k};
        g.time = gemm_time(truth, kGpu, g.kernel);
        raw.push_back(g);
      }
  return raw;
}

TEST(FitGemm, PredictsHeldOutProducts) {
  GemmParameters truth = estimated_calibration("A100-SXM4-80GB").gemm.large;
  truth.sharpness = 0.8;
  truth.tiles[0].rate = 0.9;
  truth.derate = 0.15;
  GemmModel model;
  fit_gemm(gemms(truth), kGpu, model);
  EXPECT_LT(model.large.provenance.median_error, 0.01);
  EXPECT_EQ(model.large.provenance.points, 125);
  EXPECT_EQ(model.large.provenance.source, Source::interpolated);
  EXPECT_EQ(model.largest_k, 16384);
}

TEST(FitGemm, FindsTheFactorOfWeightGradients) {
  const GemmParameters truth = estimated_calibration("A100-SXM4-80GB").gemm.large;
  std::vector<GemmMeasurement> raw = gemms(truth);
  GemmMeasurement gradient;
  gradient.kernel = {4096, 4096, 8192, GemmPass::weight_gradient};
  gradient.time = gemm_time(truth, kGpu, gradient.kernel) * 1.2;
  raw.push_back(gradient);
  GemmModel model;
  fit_gemm(raw, kGpu, model);
  EXPECT_NEAR(model.weight_gradient.value, 1.2, 0.02);
  EXPECT_EQ(model.weight_gradient.source, Source::interpolated);
  EXPECT_EQ(model.input_gradient.source, Source::estimate);
}

TEST(FitGemm, FindsWhatThePowerLimitLeavesUnlessSustainedProductsWereMeasured) {
  std::vector<GemmMeasurement> raw;
  const auto add = [&raw](std::int64_t k, double rate, bool sustained = false) {
    GemmMeasurement g;
    g.kernel = {4096, 4096, k};
    g.time = {g.kernel.flops().value / rate};
    g.sustained = sustained;
    raw.push_back(g);
  };
  for (std::int64_t i = 0; i < 30; ++i) add(4096 + 8 * i, 240e12);    // 0.6 ms
  for (std::int64_t i = 0; i < 8; ++i) add(300'000 + 8 * i, 200e12);  // 50 ms
  GemmModel model;
  fit_gemm(raw, kGpu, model);
  ASSERT_TRUE(model.power);
  EXPECT_NEAR(model.power->value, 1.2, 1e-9);
  EXPECT_EQ(model.power->source, Source::interpolated);
  add(8192, 180e12, true);
  fit_gemm(raw, kGpu, model);
  EXPECT_FALSE(model.power);
}

// An engine that quantises its input at 6 bytes per value: the fit finds the product alone.
TEST(FitGemm, RemovesWhatAServingEngineQuantises) {
  Gpu gpu = kGpu;
  gpu.peak_fp8 = gpu.peak * 2.;
  const GemmParameters truth = estimated_calibration("A100-SXM4-80GB").gemm.large;
  std::vector<GemmMeasurement> raw = gemms(truth);
  for (GemmMeasurement& g : raw) {
    g.kernel.format = NumberFormat::fp8;
    g.serving = true;
    g.time =
        gemm_time(truth, gpu, g.kernel) +
        Seconds{6. * static_cast<double>(g.kernel.m * g.kernel.k) / gpu.memory_bandwidth.value};
  }
  GemmModel model = estimated_calibration("A100-SXM4-80GB").gemm;
  fit_gemm(raw, gpu, model);
  ASSERT_EQ(model.quantised.size(), 1u);
  EXPECT_EQ(model.large.provenance.source, Source::estimate);  // bf16 was not measured
  EXPECT_LT(model.quantised[0].large.provenance.median_error, 0.01);
  Gemm g{8192, 4096, 8192};
  g.format = NumberFormat::fp8;
  EXPECT_NEAR(gemm_time(model.quantised[0].large, gpu, g) / gemm_time(truth, gpu, g), 1, 0.03);
}

TEST(FitGemm, KeepsTheBaseWhenThereAreTooFewPoints) {
  GemmModel model = estimated_calibration("A100-SXM4-80GB").gemm;
  fit_gemm({}, kGpu, model);
  EXPECT_EQ(model.large.provenance.source, Source::estimate);
  EXPECT_EQ(model.large.tiles.size(), 13u);
}

std::vector<AttentionMeasurement> attentions(const AttentionModel& truth, double cache_bytes) {
  std::vector<AttentionMeasurement> raw;
  for (const std::int64_t length : {64, 256, 512, 1024, 2048, 4096, 8192})
    for (const std::int64_t batch : {1, 2, 4, 8, 16})
      for (const std::int64_t heads : {4, 8, 16})
        for (const std::int64_t kv_heads : {std::int64_t{1}, heads}) {
          AttentionMeasurement a;
          a.kernel = {{{length, batch}}, heads, kv_heads, 128, true, false};
          const double cache = cache_bytes * static_cast<double>(length * batch * kv_heads * 128);
          a.time = attention_time(truth, kGpu, a.kernel).time +
                   Seconds{cache / kGpu.memory_bandwidth.value};
          a.serving = cache_bytes > 0;
          raw.push_back(a);
        }
  return raw;
}

TEST(FitAttention, PredictsHeldOutShapes) {
  const AttentionModel truth = estimated_calibration("A100-SXM4-80GB").attention;
  AttentionModel model;
  fit_attention(attentions(truth, 0), kGpu, model);
  ASSERT_EQ(model.kernels.size(), 1u);
  EXPECT_LT(model.kernels[0].provenance.median_error, 0.01);
  EXPECT_NEAR(model.kernels[0].rate, 0.6, 0.03);
}

TEST(FitAttention, RemovesTheCacheWritesOfServingEngines) {
  const AttentionModel truth = estimated_calibration("A100-SXM4-80GB").attention;
  AttentionModel model;
  fit_attention(attentions(truth, 16), kGpu, model);
  const Attention training{{{1024, 16}}, 16, 16, 128, true, false};
  EXPECT_NEAR(
      attention_time(model, kGpu, training).time / attention_time(truth, kGpu, training).time, 1,
      0.05);
}

TEST(FitMemoryBound, FindsLaunchAndEfficiencies) {
  std::vector<Measurement<MemoryBound>> raw;
  for (const std::int64_t row : {1024, 4096})
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 2) {
      const double norm = row == 1024 ? 0.7 : 0.4;
      const auto seconds = [&](double efficiency) {
        return Seconds{4e-6} + Bytes{bytes} / (kGpu.memory_bandwidth * efficiency);
      };
      raw.push_back({{MemoryOp::norm, {bytes}, bytes / row, row}, seconds(norm)});
      raw.push_back({{MemoryOp::elementwise, {bytes}, 0, row}, seconds(0.9)});
    }
  MemoryBoundModel model = estimated_calibration("A100-SXM4-80GB").memory_bound;
  fit_memory_bound(raw, kGpu, model);
  EXPECT_NEAR(model.launch.value, 4e-6, 1e-8);
  EXPECT_NEAR(model.operations[0].rows.at(0).efficiency, 0.9, 1e-3);
  EXPECT_NEAR(model.operations[1].rows.at(0).efficiency, 0.7, 1e-3);
  EXPECT_NEAR(model.operations[1].rows.at(1).efficiency, 0.4, 1e-3);
  EXPECT_EQ(model.operations[2].provenance.source, Source::estimate);  // not measured
}

TEST(FitCollectives, FindsTheStepsOfARingAcrossNodes) {
  CollectiveModel truth = estimated_calibration("A100-SXM4-80GB").collectives;
  for (NetworkCollective& n : truth.network)
    if (n.op == CollectiveOp::all_gather) {
      n.lines[1].network_step = {11e-6};
      n.lines[1].node_step = {3e-6};
      n.lines[1].busy_efficiency = 0.4;
    }
  ClusterSpec cluster;
  cluster.nvlink_bandwidth = kGpu.nvlink_bandwidth;
  cluster.nic_bandwidth = {50e9};
  std::vector<Measurement<Collective>> raw;
  for (const GroupShape group : {GroupShape{4, 4, 1}, GroupShape{32, 4, 1}, GroupShape{10, 10, 1}})
    for (std::int64_t bytes = 1 << 22; bytes <= 1 << 30; bytes *= 2) {
      const Collective c{CollectiveOp::all_gather, {bytes}, group};
      raw.push_back({c, collective_time(truth, cluster, c).time});
    }
  CollectiveModel model = estimated_calibration("A100-SXM4-80GB").collectives;
  fit_collectives(raw, kGpu, {}, model);
  const NetworkLine& line = model.network.front().lines.at(1);
  EXPECT_NEAR(line.network_step.value, 11e-6, 0.3e-6);
  EXPECT_NEAR(line.node_step.value, 3e-6, 0.1e-6);
  EXPECT_NEAR(line.busy_efficiency, 0.4, 0.01);
  EXPECT_EQ(model.network.front().smallest_bytes, 1 << 22);
}

TEST(FitP2p, FindsLatencyAndBandwidthAcrossNodes) {
  std::vector<Measurement<PointToPoint>> raw;
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4)
    raw.push_back({{{bytes}, false, 1}, Seconds{30e-6} + Bytes{bytes} / BytesPerSecond{20e9}});
  P2pModel model = estimated_calibration("A100-SXM4-80GB").p2p;
  fit_p2p(raw, kGpu, model);
  EXPECT_NEAR(model.network_latency.value, 30e-6, 1e-7);
  EXPECT_NEAR(model.message_bandwidth.value, 20e9, 1e7);
  EXPECT_EQ(model.node_provenance.source, Source::estimate);
}

// A core without a data sheet: rates that scatter, still rise where the measurements end, and are
// higher backward. The file gives no product more than its peak, and all as fast as fitted.
TEST(Fit, AMachineWithoutASheetHasAPeakAboveAllItsProducts) {
  for (const double rise : {0., 200., 2000.}) {
    RawData raw;
    raw.header.gpu = "some-core";
    for (const std::int64_t m : {64, 128, 160, 256, 512})
      for (const std::int64_t n : {256, 768, 1024})
        for (const std::int64_t k : {256, 512, 1024})
          for (const GemmPass pass : {GemmPass::forward, GemmPass::weight_gradient}) {
            GemmMeasurement g;
            g.kernel = {m, n, k, pass};
            g.kernel.format = NumberFormat::fp32;
            const double scatter = 1 + 0.2 * std::sin(static_cast<double>(m + 3 * n + 7 * k));
            const double rate = 60e9 * scatter * static_cast<double>(m) /
                                (static_cast<double>(m) + rise) *
                                (pass == GemmPass::forward ? 1 : 1.3);
            g.time = {g.kernel.flops().value / rate};
            raw.gemm.push_back(g);
          }
    const Calibration base = estimated_calibration("some-core", measured_sheet(raw));
    const Calibration c = parse_calibration(to_json(fit::fit(raw, base)), "x");
    EXPECT_FALSE(above_peak(c)) << rise;
    for (const std::int64_t size : {512, 1024, 8192, 1 << 20})
      for (const GemmPass pass : {GemmPass::forward, GemmPass::weight_gradient}) {
        Gemm g{size, size, size, pass};
        g.format = NumberFormat::fp32;
        EXPECT_LE(g.flops().value / gemm_time(c.gemm, c.gpu, g).time.value, c.gpu.peak.value)
            << rise << " " << size;
      }
    const double best = measured_sheet(raw).peak.value;
    EXPECT_GE(c.gpu.peak.value, best);
    EXPECT_LT(c.gpu.peak.value, 1.5 * best);
  }
}

TEST(Fit, IsTheSameEveryTimeAndForEveryOrderOfLines) {
  RawData raw;
  raw.header.gpu = "A100-SXM4-80GB";
  raw.gemm = gemms(estimated_calibration("A100-SXM4-80GB").gemm.large);
  raw.set_source("made up");
  const std::string once = to_json(fit::fit(raw, estimated_calibration("A100-SXM4-80GB")));
  std::reverse(raw.gemm.begin(), raw.gemm.end());
  EXPECT_EQ(to_json(fit::fit(raw, estimated_calibration("A100-SXM4-80GB"))), once);
  EXPECT_EQ(parse_calibration(once, "x").gemm.large.provenance.from, "made up");
}

}  // namespace
}  // namespace mllmsim
