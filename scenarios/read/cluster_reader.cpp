#include "scenarios/read/cluster_reader.hpp"

#include "scenarios/tree/toml_reader.hpp"

namespace mllmsim::scenarios {
namespace {

// Sinha et al. (SC 2022): GPUs of one kind in six clusters differ by 8 % in GEMMs, whisker to
// whisker of a box plot, which is 5.4 standard deviations of a normal distribution.
constexpr double kGpuSpeedSpread = 0.015;

}  // namespace

ClusterSpec read_cluster(const Node& table, const std::string& key, Problems& problems) {
  constexpr Range kNodes{1, 1e5}, kPerNode{1, 1024};
  TableReader reader(table, key, problems);
  ClusterSpec c;
  c.name = "cluster";
  std::string description;
  reader.read("name", c.name);
  reader.read("description", description);
  reader.read("calibration", c.calibration);
  reader.read("nodes", c.nodes, kNodes);
  reader.require("gpus_per_node", c.gpus_per_node, kPerNode);
  reader.require("gpu_memory", c.gpu_memory);
  if (reader.require("nvlink_bandwidth", c.nvlink_bandwidth))
    c.nvlink_bandwidth = c.nvlink_bandwidth / 2.;
  reader.require("nics_per_node", c.nics_per_node, kPerNode);
  reader.require("nic_bandwidth", c.nic_bandwidth);
  reader.read("nodes_per_leaf", c.nodes_per_leaf, kNodes);
  reader.read("oversubscription", c.oversubscription, {1, 1000});
  reader.read("cross_leaf_share", c.cross_leaf_share, {0.01, 1});
  c.gpu_speed_spread = kGpuSpeedSpread;
  reader.read("gpu_speed_spread", c.gpu_speed_spread, {0, 1});
  return c;
}

ClusterSpec cluster_of(int gpus) {
  ClusterSpec c;
  c.name = "any";
  c.gpus_per_node = 8;
  while (gpus % c.gpus_per_node != 0) --c.gpus_per_node;
  c.nodes = gpus / c.gpus_per_node;
  c.nics_per_node = c.gpus_per_node;
  c.gpu_memory = {80LL << 30};
  c.nvlink_bandwidth = {300e9};
  c.nic_bandwidth = {25e9};
  return c;
}

}  // namespace mllmsim::scenarios
