// The shipped calibrations load and give figures an engineer would recognise.
#include "cost_models/kernel_costs.hpp"

#include <gtest/gtest.h>

#include "sim/errors.hpp"

namespace mllmsim {
namespace {

const std::filesystem::path kCalibrations =
    std::filesystem::path(__FILE__).parent_path() / "../../cost_models/calibrations";

// Four nodes of eight GPUs; A100s with 4 x 200 Gb/s, H100s with 8 x 400 Gb/s a node.
ClusterSpec a100_cluster() {
  ClusterSpec c;
  c.nodes = 4;
  c.nvlink_bandwidth = {300e9};
  c.nics_per_node = 4;
  c.nic_bandwidth = {25e9};
  return c;
}

double tflops(const KernelCosts& costs, const Gemm& g) {
  return g.flops().value / costs.gemm(g).time.value / 1e12;
}

TEST(KernelCosts, LargeA100GemmRunsBetween240And290TeraflopsASecond) {
  const auto costs = read_kernel_costs(kCalibrations / "a100-sxm4-80g.json", a100_cluster());
  const double rate = tflops(*costs, {8192, 8192, 8192});
  EXPECT_GT(rate, 240);
  EXPECT_LT(rate, 290);
}

TEST(KernelCosts, MissingFileIsTheEnvironmentsFault) {
  EXPECT_THROW(read_kernel_costs("/nonexistent.json", a100_cluster()), EnvironmentError);
}

}  // namespace
}  // namespace mllmsim
