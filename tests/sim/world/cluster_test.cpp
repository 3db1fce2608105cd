// Routes and loads in each topology, derived by hand. Small case of most tests: two nodes of four
// GPUs with two NICs each, so GPUs 0 and 1 share NIC 0, 2 and 3 NIC 1, 4 and 5 NIC 2, ...
#include "sim/world/cluster.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <thread>

#include "sim/world/network.hpp"

namespace mllmsim {
namespace {

ClusterSpec two_nodes(TopologyKind kind = TopologyKind::leaf_spine) {
  ClusterSpec c;
  c.nodes = 2;
  c.gpus_per_node = 4;
  c.nics_per_node = 2;
  c.nvlink_bandwidth = {300e9};
  c.nic_bandwidth = {25e9};
  c.topology.kind = kind;
  return c;
}

// Two racks: 36 trays of 4 GPUs and 4 NICs.
ClusterSpec two_nvl72() {
  ClusterSpec c = two_nodes(TopologyKind::rail_optimised);
  c.nodes = 36;
  c.nics_per_node = 4;
  c.topology.nvlink_domain = 72;
  c.topology.nodes_per_leaf = 18;
  return c;
}

std::string route(const Network& n, int from, int to) {
  std::string out;
  for (LinkId l : n.route(from, to)) out += (out.empty() ? "" : " ") + n.link_name(l);
  return out;
}

std::map<std::string, std::int64_t> by_name(const Network& n, const std::vector<LinkUse>& uses) {
  std::map<std::string, std::int64_t> out;
  for (const LinkUse& use : uses) out[n.link_name(use.link)] = use.bytes.value;
  return out;
}

TEST(LeafSpine, InsideANodeRoutesGoThroughTheSwitch) {
  const Network n(two_nodes());
  EXPECT_EQ(route(n, 0, 3), "gpu0->nvswitch0 nvswitch0->gpu3");
}

// Of any sizes, routes leave and arrive where the cluster says that GPUs are.
RC_GTEST_PROP(LeafSpine, RoutesBeginAndEndAtTheGpusOwnSwitchOrNic, ()) {
  const auto upto = [](int n) { return *rc::gen::inRange(0, n); };
  ClusterSpec c = two_nodes();
  c.gpus_per_node = 1 + upto(8);
  c.nics_per_node = 1 + upto(c.gpus_per_node);
  const int nodes_per_domain = 1 + upto(3);
  c.nodes = nodes_per_domain * (1 + upto(4));
  if (nodes_per_domain > 1) c.topology.nvlink_domain = nodes_per_domain * c.gpus_per_node;
  const Network n(c);
  const int from = upto(c.gpus()), to = upto(c.gpus());
  const std::vector<LinkId> links = n.route(from, to);
  RC_ASSERT(links.empty() == (from == to));
  if (links.empty()) return;
  const std::string first = n.link_name(links.front()), last = n.link_name(links.back());
  if (c.domain_of(from) == c.domain_of(to)) {
    RC_ASSERT(first == fmt::format("gpu{}->nvswitch{}", from, c.domain_of(from)));
    RC_ASSERT(last == fmt::format("nvswitch{}->gpu{}", c.domain_of(to), to));
  } else {
    RC_ASSERT(first == fmt::format("gpu{}->nic{}", from, c.nic_of(from)));
    RC_ASSERT(last == fmt::format("nic{}->gpu{}", c.nic_of(to), to));
  }
}

TEST(LeafSpine, AcrossNodesAGpuUsesItsNearestNic) {
  const Network n(two_nodes());
  EXPECT_EQ(route(n, 2, 5), "gpu2->nic1 nic1->leaf0 leaf0->nic2 nic2->gpu5");
}

TEST(LeafSpine, AnOversubscribedLeafHasLessUplink) {
  ClusterSpec c = two_nodes();
  c.topology.nodes_per_leaf = 1;
  c.topology.oversubscription = 4;
  const Network n(c);
  EXPECT_EQ(route(n, 0, 4),
            "gpu0->nic0 nic0->leaf0 leaf0->spine0 spine0->leaf1 leaf1->nic2 nic2->gpu4");
  EXPECT_DOUBLE_EQ(n.link_bandwidths()[n.route(0, 4)[2].value].value, 2 * 25e9 / 4);
}

// The receiver's port on its leaf decides: NIC 2 is port 0, NIC 3 port 1.
TEST(LeafSpine, TheReceiversPortChoosesTheSpine) {
  ClusterSpec c = two_nodes();
  c.topology.nodes_per_leaf = 1;
  c.topology.spines = 2;
  const Network n(c);
  EXPECT_EQ(route(n, 0, 4),
            "gpu0->nic0 nic0->leaf0 leaf0->spine0 spine0->leaf1 leaf1->nic2 nic2->gpu4");
  EXPECT_EQ(route(n, 0, 6),
            "gpu0->nic0 nic0->leaf0 leaf0->spine1 spine1->leaf1 leaf1->nic3 nic3->gpu6");
  EXPECT_DOUBLE_EQ(n.link_bandwidths()[n.route(0, 6)[2].value].value, 2 * 25e9 / 2);
}

TEST(LeafSpine, MessagesOfTwoGpusMeetOnTheirNic) {
  const Network n(two_nodes());
  const std::map<std::string, std::int64_t> expected{{"gpu0->nic0", 10},  {"gpu1->nic0", 10},
                                                     {"nic0->leaf0", 20}, {"leaf0->nic2", 20},
                                                     {"nic2->gpu4", 10},  {"nic2->gpu5", 10}};
  EXPECT_EQ(by_name(n, n.messages({{0, 4}, {1, 5}}, Bytes{10})), expected);
}

// A ring over all 8 GPUs: every GPU sends 800 bytes over NVLink,
// a node's 800 leave over its two NICs.
TEST(LeafSpine, ARingSpreadsOverTheNicsOfANode) {
  const Network n(two_nodes());
  for (const auto& [name, bytes] : by_name(n, n.rings({{0, 1, 2, 3, 4, 5, 6, 7}}, Bytes{800}))) {
    const bool nvlink = name.find("nvswitch") != std::string::npos;
    const bool to_network = name.find("leaf") != std::string::npos;
    EXPECT_EQ(bytes, nvlink ? 800 : to_network ? 400 : 200) << name;
  }
}

// One GPU in node 0, two in node 1: 600 bytes leave node 0 over one NIC, and arrive at two.
TEST(LeafSpine, AnUnevenRingSendsAllItReceives) {
  const Network n(two_nodes());
  const auto load = by_name(n, n.rings({{0, 4, 6}}, Bytes{600}));
  EXPECT_EQ(load.at("nic0->leaf0"), 600);
  EXPECT_EQ(load.at("leaf0->nic0"), 600);
  EXPECT_EQ(load.at("leaf0->nic2"), 300);
  EXPECT_EQ(load.at("nic3->leaf0"), 300);
}

// Four nodes, two per leaf: two of the ring's four hops cross the spine.
TEST(LeafSpine, ARingCrossesTheSpineOncePerLeaf) {
  ClusterSpec c = two_nodes();
  c.nodes = 4;
  c.topology.nodes_per_leaf = 2;
  const Network n(c);
  const auto load = by_name(n, n.rings({{0, 1, 4, 5, 8, 9, 12, 13}}, Bytes{100}));
  for (const char* link : {"leaf0->spine0", "spine0->leaf1", "leaf1->spine0", "spine0->leaf0"})
    EXPECT_EQ(load.at(link), 100) << link;
}

TEST(RailOptimised, ARailStaysOnItsLeaf) {
  const Network n(two_nodes(TopologyKind::rail_optimised));
  EXPECT_EQ(route(n, 2, 7), "gpu2->nic1 nic1->rail1.leaf0 rail1.leaf0->nic3 nic3->gpu7");
}

TEST(RailOptimised, AnotherRailIsReachedOverNvlinkFirst) {
  const Network n(two_nodes(TopologyKind::rail_optimised));
  EXPECT_EQ(route(n, 0, 7),
            "gpu0->nvswitch0 nvswitch0->gpu2 gpu2->nic1 nic1->rail1.leaf0 rail1.leaf0->nic3 "
            "nic3->gpu7");
}

// A leaf has one NIC of each of its nodes, so its uplink is that of one port per node.
TEST(RailOptimised, SpinesJoinTheGroupsOfARail) {
  ClusterSpec c = two_nodes(TopologyKind::rail_optimised);
  c.topology.nodes_per_leaf = 1;
  c.topology.oversubscription = 2;
  const Network n(c);
  EXPECT_EQ(route(n, 2, 6),
            "gpu2->nic1 nic1->rail1.leaf0 rail1.leaf0->rail1.spine0 rail1.spine0->rail1.leaf1 "
            "rail1.leaf1->nic3 nic3->gpu6");
  EXPECT_DOUBLE_EQ(n.link_bandwidths()[n.route(2, 6)[2].value].value, 25e9 / 2);
}

// Four nodes in two groups; GPUs 0, 4, 8, 12 are on rail 0: the ring leaves rail 1 alone.
TEST(RailOptimised, ARingOfOneGpuPerNodeKeepsToItsRail) {
  ClusterSpec c = two_nodes(TopologyKind::rail_optimised);
  c.nodes = 4;
  c.topology.nodes_per_leaf = 2;
  const Network n(c);
  const auto load = by_name(n, n.rings({{0, 4, 8, 12}}, Bytes{100}));
  EXPECT_EQ(load.at("rail0.leaf0->rail0.spine0"), 100);
  EXPECT_EQ(load.at("rail0.leaf1->rail0.spine0"), 100);
  for (const auto& [name, bytes] : load) {
    EXPECT_EQ(bytes, 100) << name;
    EXPECT_EQ(name.find("rail1"), std::string::npos) << name;
    EXPECT_EQ(name.find("nvswitch"), std::string::npos) << name;
  }
}

TEST(NvlinkDomain, ASingleNodeHasNothingButNvlink) {
  ClusterSpec c = two_nodes(TopologyKind::nvlink_domain);
  c.nodes = 1;
  const Network n(c);
  EXPECT_EQ(n.link_bandwidths().size(), 2U * 4);
  EXPECT_EQ(route(n, 3, 1), "gpu3->nvswitch0 nvswitch0->gpu1");
}

// GPUs 0 and 71 are in the first and the last tray of the rack.
TEST(NvlinkDomain, AGroupOf72StaysOffTheNics) {
  const Network n(two_nvl72());
  EXPECT_EQ(route(n, 0, 71), "gpu0->nvswitch0 nvswitch0->gpu71");
  std::vector<int> tp(72);
  for (std::size_t i = 0; i < tp.size(); ++i) tp[i] = static_cast<int>(i);
  const auto load = by_name(n, n.rings({tp}, Bytes{100}));
  EXPECT_EQ(load.size(), 2U * 72);
  for (const auto& [name, bytes] : load)
    EXPECT_NE(name.find("nvswitch0"), std::string::npos) << name;
}

// 144 GPUs in two domains: 7200 bytes leave a rack over its 72 NICs.
TEST(NvlinkDomain, ARingOfTwoRacksUsesAllTheirNics) {
  const Network n(two_nvl72());
  std::vector<int> all(144);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const auto load = by_name(n, n.rings({all}, Bytes{7200}));
  EXPECT_EQ(load.at("gpu5->nic5"), 100);
  EXPECT_EQ(load.at("nic143->rail3.leaf1"), 100);
  EXPECT_EQ(load.at("rail2.leaf0->rail2.spine0"), 18 * 100);
}

// PXN stays in the tray, as NCCL's does, though other trays of the rack have NICs on the rail.
TEST(NvlinkDomain, BetweenRacksTheSendersTrayHasTheRightRail) {
  const Network n(two_nvl72());
  EXPECT_EQ(route(n, 4, 75),
            "gpu4->nvswitch0 nvswitch0->gpu7 gpu7->nic7 nic7->rail3.leaf0 "
            "rail3.leaf0->rail3.spine0 rail3.spine0->rail3.leaf1 rail3.leaf1->nic75 nic75->gpu75");
}

TEST(Network, EveryRouteIsAChainFromSenderToReceiver) {
  ClusterSpec spines = two_nodes();
  spines.nodes = 6;
  spines.topology.nodes_per_leaf = 2;
  spines.topology.spines = 3;
  ClusterSpec rails = spines;
  rails.topology.kind = TopologyKind::rail_optimised;
  for (const ClusterSpec& c : {two_nodes(), spines, rails, two_nvl72()}) {
    const Network n(c);
    for (int from = 0; from < c.gpus(); ++from)
      for (int to = 0; to < c.gpus(); ++to) {
        std::string at = "gpu" + std::to_string(from);
        for (const LinkId l : n.route(from, to)) {
          const std::string name = n.link_name(l);
          const std::size_t arrow = name.find("->");
          ASSERT_EQ(at, name.substr(0, arrow)) << from << " to " << to;
          at = name.substr(arrow + 2);
        }
        ASSERT_EQ(at, "gpu" + std::to_string(to));
      }
  }
}

TEST(Network, LinksOfANodeKnowIt) {
  ClusterSpec c = two_nodes();
  c.topology.nodes_per_leaf = 1;
  const Network n(c);
  std::vector<int> nodes;
  for (const LinkId l : n.route(0, 4)) nodes.push_back(n.node_of(l).value_or(-1));
  EXPECT_EQ(nodes, (std::vector{0, 0, -1, -1, 1, 1}));
}

TEST(Network, ThreadsFindTheSameRoutes) {
  const Network shared(two_nvl72()), alone(two_nvl72());
  std::vector<std::vector<LinkId>> found(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < found.size(); ++t)
      threads.emplace_back([&, t] { found[t] = shared.route(1, 143); });
  }
  for (const auto& links : found) EXPECT_EQ(links, alone.route(1, 143));
}

}  // namespace
}  // namespace mllmsim
