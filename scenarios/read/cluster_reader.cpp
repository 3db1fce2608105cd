#include "scenarios/read/cluster_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/tree/toml_reader.hpp"

namespace mllmsim::scenarios {
namespace {

void check_topology(const ClusterSpec& c, TableReader& reader) {
  const int domain = c.topology.nvlink_domain;
  if (domain % c.gpus_per_node != 0)
    reader.problem("nvlink_domain",
                   fmt::format("expected a multiple of gpus_per_node ({}), found {}: a domain is "
                               "one node or several",
                               c.gpus_per_node, domain));
  else if (c.topology.kind == TopologyKind::nvlink_domain && c.domains() > 1)
    reader.problem("topology",
                   fmt::format("\"nvlink-domain\" has no network, and {} GPUs are more than the "
                               "domain's {}",
                               c.gpus(), c.gpus_per_domain()));
  if (c.topology.kind == TopologyKind::nvlink_domain)
    for (const char* key : {"nodes_per_leaf", "spines", "oversubscription", "cross_leaf_share"})
      if (reader.has(key)) reader.problem(key, "topology \"nvlink-domain\" has no switches");
  if (c.topology.spines > 1 && c.cross_leaf_share < 1)
    reader.problem("cross_leaf_share",
                   "expected 1, as flows meet on spines that are told one by one (spines > 1)");
}

// GPUs in the place of nodes: whole nodes, or some GPUs of one. A base's nodes give way.
void read_gpus(TableReader& reader, ClusterSpec& c) {
  int gpus = 0;
  if (!reader.read("gpus", gpus, {1, 1e8})) return;
  if (const Node* at = reader.find("gpus"), *nodes = reader.find("nodes");
      nodes && nodes->position.file.str() == at->position.file.str())
    reader.problem("gpus", "nodes says how many as well: give one of the two");
  if (gpus % c.gpus_per_node != 0 && gpus > c.gpus_per_node)
    return reader.problem(
        "gpus", fmt::format("expected whole nodes of {} GPUs, found {}", c.gpus_per_node, gpus));
  c.gpus_per_node = std::min(c.gpus_per_node, gpus);
  c.nodes = gpus / c.gpus_per_node;
}

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
  read_gpus(reader, c);
  reader.require("gpu_memory", c.gpu_memory);
  if (reader.require("nvlink_bandwidth", c.nvlink_bandwidth))
    c.nvlink_bandwidth = c.nvlink_bandwidth / 2.;
  Topology& t = c.topology;
  reader.read("topology", t.kind);
  const bool network = t.kind != TopologyKind::nvlink_domain;
  if (network || reader.has("nics_per_node"))
    reader.require("nics_per_node", c.nics_per_node, kPerNode);
  if (network || reader.has("nic_bandwidth")) reader.require("nic_bandwidth", c.nic_bandwidth);
  reader.read("host_link_bandwidth", c.host_link_bandwidth);
  reader.read("host_memory_bandwidth", c.host_memory_bandwidth);
  reader.read("host_slowdown", c.host_slowdown, {0.1, 100});
  reader.read("nvlink_domain", t.nvlink_domain, kNodes);
  reader.read("nodes_per_leaf", t.nodes_per_leaf, kNodes);
  reader.read("spines", t.spines, kPerNode);
  reader.read("oversubscription", t.oversubscription, {1, 1000});
  reader.read("cross_leaf_share", c.cross_leaf_share, {0.01, 1});
  reader.read("gpu_speed_spread", c.gpu_speed_spread, {0, 1});
  check_topology(c, reader);
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
