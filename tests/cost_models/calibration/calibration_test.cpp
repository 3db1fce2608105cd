#include "cost_models/calibration/estimate.hpp"

#include <gtest/gtest.h>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace costs;
namespace {

const std::string kText = to_json(estimated_calibration("NVIDIA A100-SXM4-80GB"));

// What reading `text` complains about.
std::string problem(const std::string& text) {
  try {
    parse_calibration(text, "my.json");
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

std::string replaced(const std::string& what, const std::string& by) {
  std::string text = kText;
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Calibration, WritingWhatWasReadGivesTheSameBytes) {
  EXPECT_EQ(to_json(parse_calibration(kText, "my.json")), kText);
}

TEST(Calibration, MissingKeysAreNamedByTheirPath) {
  EXPECT_EQ(problem(replaced("\"sms\": 108", "\"sm\": 108")), "my.json: gpu.sms: missing");
}

TEST(Calibration, UnknownKeysAreErrors) {
  EXPECT_EQ(problem(replaced("\"sms\": 108", "\"sms\": 108, \"smss\": 1")),
            "my.json: gpu.smss: unknown key");
}

TEST(Calibration, WrongTypesAreErrors) {
  EXPECT_EQ(problem(replaced("\"sms\": 108", "\"sms\": \"many\"")),
            "my.json: gpu.sms: expected a whole number");
}

TEST(Calibration, ListsAreNamedByTheirIndex) {
  EXPECT_EQ(problem(replaced("{\"m\": 128, \"n\": 256, \"rate\": 0.85}",
                             "{\"m\": 128, \"n\": 256, \"rate\": -1}")),
            "my.json: gemm.large.tiles[1].rate: expected a number above 0");
}

TEST(Calibration, EveryOlderFlashAttentionMustBeThere) {
  EXPECT_EQ(problem(replaced("\"generation\": 2", "\"generation\": 3")),
            "my.json: attention.older: expected every generation before the measured one");
}

TEST(Calibration, EveryOperationMustBeThere) {
  EXPECT_EQ(problem(replaced("\"op\": \"norm\"", "\"op\": \"elementwise\"")),
            "my.json: memory_bound.operations: no entry for norm");
}

TEST(Calibration, WhatIsNotJsonIsNamedByLineAndColumn) {
  EXPECT_EQ(problem("{\n  \"header\": oops\n}").substr(0, 30), "my.json:2:13: not valid JSON: ");
  EXPECT_EQ(problem("{} {}"), "my.json:1:4: not valid JSON: text after the value");
}

TEST(Calibration, AScaledPartTakesTheFactorAndIsTransferred) {
  Calibration c = parse_calibration(kText, "my.json");
  c.gemm.large.provenance.source = Source::interpolated;
  const Gemm g{4096, 4096, 4096};
  const Seconds before = gemm_time(c.gemm.large, c.gpu, g);
  scale(c, "gemm", 1.04);
  EXPECT_NEAR(gemm_time(c.gemm.large, c.gpu, g) / before, 1.04, 1e-9);
  EXPECT_EQ(c.gemm.large.provenance.source, Source::transferred);
}

// The fastest tile reaches 0.85 of the peak: 1.1 times as fast is still this GPU, twice as fast is
// another, whose peak is twice as high. Attention keeps its times.
TEST(Calibration, GemmsFasterThanThePeakRaiseIt) {
  const Calibration before = parse_calibration(kText, "my.json");
  const Gemm g{8192, 8192, 8192};
  const Attention a{{{2048, 2}}, 16, 16, 128, true};
  for (const double speed : {1.1, 2.0}) {
    Calibration c = before;
    scale(c, "gemm", 1 / speed);
    EXPECT_NEAR(c.gpu.peak / before.gpu.peak, speed < 1.15 ? 1 : speed, 1e-9);
    EXPECT_NEAR(gemm_time(before.gemm.large, before.gpu, g) / gemm_time(c.gemm.large, c.gpu, g),
                speed, 1e-9);
    EXPECT_NEAR(attention_time(c.attention, c.gpu, a).time /
                    attention_time(before.attention, before.gpu, a).time,
                1, 1e-9);
  }
}

TEST(Calibration, EveryPartScales) {
  ClusterSpec cluster;
  cluster.nvlink_bandwidth = {300e9};
  cluster.nic_bandwidth = {25e9};
  const auto times = [&](const Calibration& c) {
    return std::vector<double>{
        attention_time(c.attention, c.gpu, {{{2048, 2}}, 16, 16, 128, true, true}).time.value,
        memory_bound_time(c.memory_bound, c.gpu, {MemoryOp::norm, {1 << 24}, 1024, 4096})
            .time.value,
        collective_time(c.collectives, cluster, {CollectiveOp::all_gather, {1 << 24}, {8, 1, 1}})
            .time.value,
        collective_time(c.collectives, cluster, {CollectiveOp::all_reduce, {1 << 24}, {32, 4, 1}})
            .time.value,
        p2p_time(c.p2p, cluster, {{1 << 24}, true, 1}).time.value,
        p2p_time(c.p2p, cluster, {{1 << 24}, false, 1}).time.value};
  };
  Calibration c = parse_calibration(kText, "my.json");
  const std::vector<double> before = times(c);
  for (const char* part : {"attention", "memory_bound", "collectives", "point_to_point"})
    scale(c, part, 2);
  const std::vector<double> after = times(c);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_GT(after[i], 1.5 * before[i]) << i;
}

TEST(Calibration, ScalingSomethingElseIsTheUsersFault) {
  Calibration c = parse_calibration(kText, "my.json");
  EXPECT_THROW(scale(c, "gems", 1), UserError);
  EXPECT_THROW(scale(c, "gemm", 0), UserError);
}

TEST(Calibration, UnknownGpusAreListedWithTheKnown) {
  try {
    estimated_calibration("Voodoo 2");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("H100"), std::string::npos);
  }
}

TEST(Calibration, TransferringKeepsEfficienciesAndChangesTheDataSheet) {
  Calibration a100 = parse_calibration(kText, "my.json");
  a100.gemm.all.provenance.source = Source::interpolated;
  const Calibration h100 = transferred(a100, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(h100.gpu.sms, 132);
  EXPECT_EQ(h100.gemm.all.tiles.front().rate, a100.gemm.all.tiles.front().rate);
  EXPECT_EQ(h100.gemm.all.provenance.source, Source::transferred);
  EXPECT_EQ(h100.gemm.large.provenance.source, Source::estimate);
}

}  // namespace
}  // namespace mllmsim
