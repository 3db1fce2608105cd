#include <gtest/gtest.h>

#include "cost_models/kernels/memory_bound.hpp"
#include "cost_models/kernels/p2p.hpp"

namespace mllmsim {
using namespace costs;
namespace {

// 1 TB/s; norms reach 80 % of it on rows of 1024 and 40 % from 4096.
const Gpu kMemoryGpu{{1e15}, {1e12}, {1e11}, 100};
const MemoryBoundModel kMemory{
    {2e-6},
    {{MemoryOp::elementwise, {}, {{1, 0.5}}}, {MemoryOp::norm, {}, {{1024, 0.8}, {4096, 0.4}}}}};

double us(MemoryOp op, std::int64_t row) {
  return memory_bound_time(kMemory, kMemoryGpu, {op, {1'000'000}, 0, row}).time.value * 1e6;
}

TEST(MemoryBound, IsLaunchPlusBytesOverBandwidth) {
  EXPECT_NEAR(us(MemoryOp::elementwise, 0), 2 + 2, 1e-9);
}

TEST(MemoryBound, NormsSlowDownWithTheRow) {
  EXPECT_NEAR(us(MemoryOp::norm, 64), 2 + 1 / 0.8, 1e-9);
  EXPECT_NEAR(us(MemoryOp::norm, 2048), 2 + 1 / 0.6, 1e-9);  // half way in log2
  EXPECT_NEAR(us(MemoryOp::norm, 1 << 20), 2 + 1 / 0.4, 1e-9);
}

P2pModel p2p() {
  P2pModel m;
  m.nvlink_bandwidth = {100e9};
  m.node = size_curve({{1e6, {20e-6}}}, Seconds{10e-6});
  m.network_latency = {50e-6};
  m.message_bandwidth = {25e9};
  m.nic_efficiency = 0.8;
  return m;
}

double message_us(double nic, const PointToPoint& m) {
  ClusterSpec c;
  c.nvlink_bandwidth = {100e9};
  c.nic_bandwidth = {nic};
  return p2p_time(p2p(), c, m).time.value * 1e6;
}

TEST(PointToPoint, InANodeFollowsTheCurve) {
  EXPECT_NEAR(message_us(50e9, {{500'000}, true, 1}), 15, 1e-9);
}

TEST(PointToPoint, AFastNicIsNotFilledByOneMessage) {
  EXPECT_NEAR(message_us(50e9, {{1'000'000}, false, 1}), 50 + 40, 1e-9);
}

TEST(PointToPoint, ASlowOrSharedNicIsTheLimit) {
  EXPECT_NEAR(message_us(25e9, {{1'000'000}, false, 1}), 50 + 50, 1e-9);
  EXPECT_NEAR(message_us(25e9, {{1'000'000}, false, 2}), 50 + 100, 1e-9);
}

}  // namespace
}  // namespace mllmsim
