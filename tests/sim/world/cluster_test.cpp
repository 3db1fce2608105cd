// Routes and ring loads on two nodes of four GPUs with two NICs each.
#include "sim/world/cluster.hpp"
#include "sim/world/network.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

ClusterSpec two_nodes() {
  ClusterSpec c;
  c.nodes = 2;
  c.gpus_per_node = 4;
  c.nics_per_node = 2;
  c.nvlink_bandwidth = {300e9};
  c.nic_bandwidth = {25e9};
  return c;
}

std::string text(const Network& n, const std::vector<LinkId>& route) {
  std::string out;
  for (LinkId l : route) out += (out.empty() ? "" : " ") + n.link_name(l);
  return out;
}

TEST(Network, InsideANodeRoutesGoThroughTheSwitch) {
  const Network n(two_nodes());
  EXPECT_EQ(text(n, n.route(0, 3)), "gpu0->nvswitch0 nvswitch0->gpu3");
}

TEST(Network, AcrossNodesAGpuUsesItsNearestNic) {
  const Network n(two_nodes());
  EXPECT_EQ(text(n, n.route(2, 5)), "gpu2->nic1 nic1->leaf0 leaf0->nic2 nic2->gpu5");
}

TEST(Network, MessagesOfTwoGpusMeetOnTheirNic) {
  const Network n(two_nodes());
  for (const LinkUse& use : n.messages({{0, 4}, {1, 5}}, Bytes{10}))
    EXPECT_EQ(use.bytes.value, n.link_name(use.link).find("gpu") == std::string::npos ? 20 : 10)
        << n.link_name(use.link);
}

// A ring over all 8 GPUs: every GPU sends 800 bytes over NVLink,
// a node's 800 leave over its two NICs.
TEST(Network, ARingSpreadsOverTheNicsOfANode) {
  const Network n(two_nodes());
  for (const LinkUse& use : n.rings({{0, 1, 2, 3, 4, 5, 6, 7}}, Bytes{800})) {
    const std::string name = n.link_name(use.link);
    const bool nvlink = name.find("nvswitch") != std::string::npos;
    const bool to_network = name.find("leaf") != std::string::npos;
    EXPECT_EQ(use.bytes.value, nvlink ? 800 : to_network ? 400 : 200) << name;
  }
}

TEST(Network, AnOversubscribedLeafHasLessUplink) {
  ClusterSpec c = two_nodes();
  c.nodes_per_leaf = 1;
  c.oversubscription = 4;
  const Network n(c);
  const auto route = n.route(0, 4);
  EXPECT_EQ(text(n, route),
            "gpu0->nic0 nic0->leaf0 leaf0->spine spine->leaf1 leaf1->nic2 nic2->gpu4");
  EXPECT_DOUBLE_EQ(n.link_bandwidths()[route[2].value].value, 2 * 25e9 / 4);
}

}  // namespace
}  // namespace mllmsim
