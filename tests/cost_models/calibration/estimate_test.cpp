// The shipped estimate on the shipped data sheets. NVLink of an A100 is 300 GB/s, and rings are
// taken to reach 0.78 of it.
#include "cost_models/calibration/estimate.hpp"
#include "cost_models/kernels/kernel_costs.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace mllmsim {
using namespace costs;
namespace {

// 12 us, and 1 GiB of two ranks, of which each sends half, at 234 GB/s.
TEST(Estimate, CollectivesInANodeAreRelativeToNvlink) {
  const Calibration c = estimated_calibration("NVIDIA A100-SXM4-80GB");
  const NodeCollective& gather = c.collectives.node.front();
  EXPECT_EQ(gather.ranks, 2);
  EXPECT_DOUBLE_EQ(gather.curve.points.back().time.value, 12e-6 + (1 << 29) / 234e9);
}

// 12 us and 1 GiB at 0.8 of the H800's 200 GB/s.
TEST(Estimate, MessagesInANodeAreRelativeToNvlink) {
  const Calibration c = estimated_calibration("NVIDIA H800");
  EXPECT_DOUBLE_EQ(c.p2p.node.points.back().time.value, 12e-6 + (1 << 30) / 160e9);
}

TEST(Estimate, EfficienciesDoNotDependOnTheSheet) {
  const Calibration a100 = estimated_calibration("NVIDIA A100-SXM4-80GB");
  const Calibration h100 = estimated_calibration("NVIDIA H100 80GB HBM3");
  EXPECT_EQ(a100.gemm.all.tiles.front().rate, 0.85);
  EXPECT_EQ(h100.gemm.all.tiles.front().rate, 0.85);
  EXPECT_EQ(h100.gpu.peak.value, 989.4e12);
}

TEST(Estimate, NothingInItIsMoreThanAnEstimate) {
  const Calibration c = estimated_calibration("NVIDIA H200");
  const auto check = [](const auto& part) {
    EXPECT_EQ(part.source, Source::estimate);
    EXPECT_FALSE(part.from.empty());
  };
  each_provenance(c, check);
  each_factor(c, check);
}

TEST(DataSheets, EachSaysWhereItComesFrom) {
  const std::vector<DataSheet> sheets = data_sheets();
  EXPECT_EQ(sheets.size(), 14U);
  for (const DataSheet& s : sheets) EXPECT_FALSE(s.gpu.from.empty()) << s.name;
}

// "A100-SXM4-40GB" contains the names of both A100s.
TEST(DataSheets, TheLongestNameThatFitsIsMeant) {
  EXPECT_EQ(gpu_of("NVIDIA A100-SXM4-40GB").memory_bandwidth.value, 1555e9);
  EXPECT_EQ(gpu_of("nvidia a100-sxm4-80gb").memory_bandwidth.value, 2039e9);
}

TEST(DataSheets, AGpuOfOnesOwnIsAFile) {
  const auto data = std::filesystem::path(testing::TempDir()) / "own_gpu";
  std::filesystem::create_directories(data / "cost_models" / "gpus");
  std::ofstream(data / "cost_models" / "gpus" / "voodoo.json")
      << R"({"name": "Voodoo 2", "reported_as": ["Voodoo-2"], "peak_tflops": {"bf16": 2},
             "memory_gb_per_s": 3, "memory_gb": 4, "nvlink_gb_per_s": 5, "sms": 6,
             "source": "the box"})";
  setenv("MLLMSIM_DATA", data.c_str(), 1);
  const std::optional<Gpu> gpu = find_gpu("3dfx Voodoo 2");
  unsetenv("MLLMSIM_DATA");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->sms, 6);
  EXPECT_EQ(gpu->from, "the box");
}

}  // namespace
}  // namespace mllmsim
