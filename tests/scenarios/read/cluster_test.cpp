// Keys of a cluster's topology: what they become, and what is refused. The small run has one node
// of 8 GPUs and 4 NICs.
#include <gtest/gtest.h>

#include "scenarios/files/shipped_files.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
namespace {

ClusterSpec cluster_with(const std::vector<std::string>& overrides) {
  return read_text_scenario(kSmallRun, overrides).job.cluster;
}

TEST(Cluster, IsALeafSpineOfSingleNodeDomainsUnlessSaid) {
  const ClusterSpec c = cluster_with({"cluster.nodes=4"});
  EXPECT_EQ(c.topology.kind, TopologyKind::leaf_spine);
  EXPECT_EQ(c.domains(), 4);
  EXPECT_EQ(c.gpu_speed_spread, ClusterSpec{}.gpu_speed_spread);
}

// The small cluster's nodes have 8 GPUs: 16 are two of them, 4 are half of one.
TEST(Cluster, GpusStandForNodes) {
  EXPECT_EQ(cluster_with({"cluster.gpus=16"}).nodes, 2);
  EXPECT_EQ(cluster_with({"cluster.gpus=16"}).gpus_per_node, 8);
  EXPECT_EQ(cluster_with({"cluster.gpus=4"}).nodes, 1);
  EXPECT_EQ(cluster_with({"cluster.gpus=4"}).gpus(), 4);
  EXPECT_EQ(
      problems_with({"cluster.gpus=12"}),
      "command line: cluster.gpus=12: cluster.gpus: expected whole nodes of 8 GPUs, found 12");
  const char* both =
      "command line: cluster.gpus=16: cluster.gpus: cluster.nodes says this as well: give one of "
      "the two";
  EXPECT_EQ(problems_with({"cluster.gpus=16", "cluster.nodes=4"}), both);
  EXPECT_EQ(problems_with({"cluster.nodes=4", "cluster.gpus=16"}), both);
}

TEST(Cluster, TopologyKeysAreRead) {
  const ClusterSpec c = cluster_with({"cluster.nodes=4", "cluster.topology=rail-optimised",
                                      "cluster.nvlink_domain=16", "cluster.nodes_per_leaf=2",
                                      "cluster.spines=4", "cluster.oversubscription=2"});
  EXPECT_EQ(c.topology.kind, TopologyKind::rail_optimised);
  EXPECT_EQ(c.domains(), 2);
  EXPECT_EQ(c.topology.nodes_per_leaf, 2);
  EXPECT_EQ(c.topology.spines, 4);
  EXPECT_EQ(c.topology.oversubscription, 2);
}

TEST(Cluster, TopologiesHaveNames) {
  EXPECT_EQ(problems_with({"cluster.topology=rail"}),
            "command line: cluster.topology=rail: cluster.topology: expected \"leaf-spine\", "
            "\"rail-optimised\" or \"nvlink-domain\", found \"rail\"");
}

TEST(Cluster, ADomainIsWholeNodes) {
  EXPECT_EQ(problems_with({"cluster.nvlink_domain=12"}),
            "command line: cluster.nvlink_domain=12: cluster.nvlink_domain: expected a multiple of "
            "gpus_per_node (8), found 12: a domain is one node or several");
}

TEST(Cluster, ADomainByItselfHasNoNetwork) {
  EXPECT_EQ(
      problems_with({"cluster.topology=nvlink-domain", "cluster.nodes=2", "cluster.spines=2"}),
      "command line: cluster.topology=nvlink-domain: cluster.topology: \"nvlink-domain\" has "
      "no network, and 16 GPUs are more than the domain's 8\n"
      "command line: cluster.spines=2: cluster.spines: topology \"nvlink-domain\" has no "
      "switches");
}

TEST(Cluster, SharesOfUplinksAreForAnAggregate) {
  EXPECT_EQ(problems_with({"cluster.spines=2", "cluster.cross_leaf_share=0.63"}),
            "command line: cluster.cross_leaf_share=0.63: cluster.cross_leaf_share: expected 1, as "
            "flows meet on spines that are told one by one (spines > 1)");
}

TEST(Cluster, EveryShippedOneReads) {
  for (const ShippedFile& file : shipped_clusters())
    EXPECT_EQ(problems_with({"cluster=" + file.name, "parallelism.global_batch_size=576"}), "")
        << file.path;
}

TEST(Cluster, TheShippedRackOf72IsOneDomain) {
  const ClusterSpec c =
      cluster_with({"cluster=gb200-nvl72", "cluster.nodes=18", "parallelism.global_batch_size=18"});
  EXPECT_EQ(c.gpus(), 72);
  EXPECT_EQ(c.domains(), 1);
  EXPECT_EQ(c.nvlink_bandwidth.value, 900e9);
}

}  // namespace
}  // namespace mllmsim::test
