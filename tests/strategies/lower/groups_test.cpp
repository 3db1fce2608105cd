// Where groups sit when NVLink domains are larger than nodes: two GB200 NVL72 racks of 18 trays
// with 4 GPUs and 4 NICs each.
#include "strategies/lower/groups.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "cost_models/kernels/collectives.hpp"
#include "cost_models/kernels/kernel_costs.hpp"

namespace mllmsim::lower {
namespace {

ClusterSpec two_racks() {
  ClusterSpec c;
  c.nodes = 36;
  c.gpus_per_node = 4;
  c.nics_per_node = 4;
  c.nic_bandwidth = {50e9};
  c.topology.nvlink_domain = 72;
  c.topology.nodes_per_leaf = 18;
  return c;
}

TEST(Groups, ATensorParallelGroupOf72IsInsideItsDomain) {
  std::vector<int> rack(72);
  std::iota(rack.begin(), rack.end(), 0);
  EXPECT_EQ(shape_of({rack}, two_racks()), (costs::GroupShape{72, 1, 1, false}));
}

TEST(Groups, BetweenRacksSiblingsShareTheNicsOfTheDomain) {
  EXPECT_EQ(shape_of({{0, 72}, {1, 73}}, two_racks()), (costs::GroupShape{2, 2, 2, true}));
}

// 72 GPUs of each rack: their 72 NICs of 50 GB/s together, all of them in use.
TEST(Groups, AGroupOfWholeRacksHasAllTheirNics) {
  const costs::NetworkShare share = costs::network_share(two_racks(), {144, 2, 1});
  EXPECT_EQ(share.bandwidth.value, 72 * 50e9);
  EXPECT_EQ(share.load, 1);
}

}  // namespace
}  // namespace mllmsim::lower
