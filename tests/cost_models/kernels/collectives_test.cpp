// Nodes of 8 GPUs with NVLink of 100 GB/s and 4 NICs of 10 GB/s; collectives measured at 2 and 8
// ranks as 10 us + bus bytes at 100 GB/s.
#include "cost_models/kernels/collectives.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/network.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace costs;
namespace {

ClusterSpec cluster() {
  ClusterSpec c;
  c.nodes = 16;
  c.nvlink_bandwidth = {100e9};
  c.nics_per_node = 4;
  c.nic_bandwidth = {10e9};
  return c;
}

CollectiveModel collective_model() {
  CollectiveModel m;
  m.nvlink_bandwidth = {100e9};
  m.node_provenance.source = Source::interpolated;
  for (const CollectiveOp op :
       {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce}) {
    for (const int ranks : {2, 8}) {
      std::vector<SizePoint> points;
      for (double bytes = 1 << 10; bytes <= 1 << 30; bytes *= 2)
        points.push_back({bytes, Seconds{10e-6 + bus_bytes(op, ranks, bytes) / 100e9}});
      m.node.push_back({op, ranks, size_curve(points, Seconds{})});
    }
    const NetworkLine ring{false, {20e-6}, {5e-6}, {1e-6}, 1.0, 0.5};
    m.network.push_back({op, {Source::interpolated, "", 0, 0, 0}, 1 << 20, {ring}});
  }
  return m;
}

double us(const Collective& c) {
  return collective_time(collective_model(), cluster(), c).time.value * 1e6;
}

TEST(Collectives, BusBytesAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_bytes(CollectiveOp::all_gather, 8, 800), 700);
  EXPECT_DOUBLE_EQ(bus_bytes(CollectiveOp::reduce_scatter, 8, 800), 700);
  EXPECT_DOUBLE_EQ(bus_bytes(CollectiveOp::all_reduce, 8, 800), 1400);
}

TEST(Collectives, AGroupOfOneCostsNothing) {
  EXPECT_EQ(us({CollectiveOp::all_reduce, {1 << 20}, {1, 1, 1}}), 0);
}

TEST(Collectives, AMeasuredPointIsReturnedAsMeasured) {
  const Collective c{CollectiveOp::all_reduce, {1 << 20}, {8, 1, 1}};
  EXPECT_NEAR(us(c), 10 + 1.75 * (1 << 20) / 100e9 * 1e6, 1e-6);
  EXPECT_EQ(collective_time(collective_model(), cluster(), c).source, Source::measured);
}

TEST(Collectives, BetweenMeasuredRanksTimeDependsOnBusBytesOnly) {
  // Both neighbours are the same line in bus bytes,
  // so 4 ranks are on it too (to the cubic's error).
  const double expected = 10 + 0.75 * 3e6 / 100e9 * 1e6;
  EXPECT_NEAR(us({CollectiveOp::all_gather, {3'000'000}, {4, 1, 1}}), expected, 0.01 * expected);
}

TEST(Collectives, HalfTheNvlinkTakesTwiceTheTimeOfLargeMessages) {
  ClusterSpec slow = cluster();
  slow.nvlink_bandwidth = {50e9};
  const Collective c{CollectiveOp::all_gather, {1 << 29}, {8, 1, 1}};
  const Cost cost = collective_time(collective_model(), slow, c);
  EXPECT_NEAR(cost.time.value * 1e6, 10 + 2 * (us(c) - 10), 1);
  EXPECT_EQ(cost.source, Source::transferred);
}

TEST(Collectives, ARailHasItsNicAloneUnlessSiblingsShareIt) {
  const NetworkShare alone = network_share(cluster(), {4, 4, 1});
  EXPECT_DOUBLE_EQ(alone.bandwidth.value, 10e9);
  EXPECT_DOUBLE_EQ(alone.load, 0.25);
  const NetworkShare shared = network_share(cluster(), {4, 4, 8});  // 8 groups on 4 NICs
  EXPECT_DOUBLE_EQ(shared.bandwidth.value, 5e9);
  EXPECT_DOUBLE_EQ(shared.load, 1);
  EXPECT_DOUBLE_EQ(network_share(cluster(), {32, 4, 1}).bandwidth.value, 40e9);
}

TEST(Collectives, BetweenLeavesFlowsMayGetLess) {
  ClusterSpec ecmp = cluster();
  ecmp.cross_leaf_share = 0.63;
  EXPECT_DOUBLE_EQ(network_share(ecmp, {4, 4, 1, false}).bandwidth.value, 10e9);
  EXPECT_DOUBLE_EQ(network_share(ecmp, {4, 4, 1, true}).bandwidth.value, 6.3e9);
}

TEST(Collectives, RingAcrossNodesByHand) {
  // 32 ranks on 4 nodes: 3 steps between, 28 within; 31/32 of 320 MB over 4 NICs at half rate.
  const double expected = 20 + 3 * 5 + 28 * 1 + 310e6 / (40e9 * 0.5) * 1e6;
  EXPECT_NEAR(us({CollectiveOp::all_gather, {320'000'000}, {32, 4, 1}}), expected, 1e-6);
}

TEST(Collectives, AllReduceAcrossNodesIsTwoRings) {
  const double expected = 20 + 2 * (3 * 5 + 28 * 1) + 620e6 / (40e9 * 0.5) * 1e6;
  EXPECT_NEAR(us({CollectiveOp::all_reduce, {320'000'000}, {32, 4, 1}}), expected, 1e-6);
}

TEST(Collectives, ANodeWithFastNicsIsLimitedByItsNvlink) {
  ClusterSpec fast = cluster();
  fast.nic_bandwidth = {1e12};
  const Collective c{CollectiveOp::all_gather, {1 << 30}, {32, 4, 1}};
  const double bandwidth =
      31.0 / 32 * (1 << 30) / collective_time(collective_model(), fast, c).time.value;
  EXPECT_LT(bandwidth, 100e9);
}

TEST(Collectives, SmallMessagesAcrossNodesAreEstimates) {
  const auto source = [](std::int64_t bytes) {
    return collective_time(collective_model(), cluster(),
                           {CollectiveOp::all_gather, {bytes}, {32, 4, 1}})
        .source;
  };
  EXPECT_EQ(source(1000), Source::estimate);
  EXPECT_EQ(source(1 << 21), Source::transferred);
}

// Every rank keeps 1/8 of its buffer; where it was not measured, an all-gather's curve stands for
// it.
TEST(Collectives, AllToAllInsideANodeIsMeasuredOrAnEstimate) {
  const Collective c{CollectiveOp::all_to_all, {1 << 20}, {8, 1, 1}};
  EXPECT_NEAR(us(c), 10 + 0.875 * (1 << 20) / 100e9 * 1e6, 1e-6);
  EXPECT_EQ(collective_time(collective_model(), cluster(), c).source, Source::estimate);
  CollectiveModel measured = collective_model();
  measured.node.push_back({CollectiveOp::all_to_all, 8, size_curve({{1 << 20, {5e-6}}}, {})});
  EXPECT_NEAR(collective_time(measured, cluster(), c).time.value * 1e6, 5, 1e-9);
}

// 32 ranks on 4 nodes: each sends 24/32 of its 32 MB to other nodes, the 8 of a node through 4 NICs
// of 10 GB/s at half rate.
TEST(Collectives, AllToAllAcrossNodesByHand) {
  const double expected = 20 + 5 + 8 * 24e6 / (40e9 * 0.5) * 1e6;
  EXPECT_NEAR(us({CollectiveOp::all_to_all, {32'000'000}, {32, 4, 1}}), expected, 1e-6);
}

}  // namespace
}  // namespace mllmsim
