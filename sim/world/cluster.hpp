// The machines, as data: nodes of GPUs with NICs, NVLink domains, and the network between them.
//
//   gpu --- nvswitch        every GPU to the NVSwitches of its domain, nvlink_bandwidth each way;
//                           a domain is a node, or several (the 18 trays of a GB200 NVL72)
//   gpu --- nic --- leaf    GPU g of a node uses NIC g * nics / gpus
//   leaf === spine          the leaf's ports * NIC bandwidth / oversubscription, over all spines
//
// The topology says which NICs share a leaf (sim/world/fabric.hpp wires it):
//
//   leaf-spine        a leaf has all NICs of nodes_per_leaf nodes
//   rail-optimised    a leaf has NIC i of nodes_per_leaf nodes: rail i of that group of nodes
//   nvlink-domain     one domain and no network: a single node, or a rack of them
//
// Every edge is two directed links, one each way. Bandwidths are per direction. Latencies are not
// here: they belong to the calibration. Left out: NVLink domains smaller than a node (their nodes'
// PCIe is not modelled).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"

namespace mllmsim {

enum class TopologyKind : std::uint8_t { leaf_spine, rail_optimised, nvlink_domain };
template <>
struct Names<TopologyKind> {
  static constexpr std::array<std::string_view, 3> list{"leaf-spine", "rail-optimised",
                                                        "nvlink-domain"};
};

struct Topology {
  TopologyKind kind = TopologyKind::leaf_spine;
  int nvlink_domain = 0;  // GPUs, of whole nodes; 0: those of one node
  int nodes_per_leaf = 32;
  // Per rail if there are rails. One stands for any number with adaptive routing, which balances
  // them; of several, a flow uses the one that static routing gives it.
  int spines = 1;
  double oversubscription = 1.0;

  bool operator==(const Topology&) const = default;
};

struct ClusterSpec {
  std::string name;
  std::string calibration;  // name or path of the GPU's calibration file
  int nodes = 1;
  int gpus_per_node = 8;
  Bytes gpu_memory{};
  // Per GPU and direction: half of what data sheets call NVLink bandwidth.
  BytesPerSecond nvlink_bandwidth{};
  int nics_per_node = 8;
  BytesPerSecond nic_bandwidth{};  // per NIC and direction
  // For what is offloaded; 0: not stated. Of each GPU: its link to the CPU in a direction (PCIe or
  // C2C), and its share of the CPUs' memory bandwidth.
  BytesPerSecond host_link_bandwidth{}, host_memory_bandwidth{};
  // What a launch takes of this CPU's time over that of a Xeon 8480C (DGX H100), of which
  // Software's host times are.
  double host_slowdown = 1;
  Topology topology;
  // What a collective between leaves gets of its NICs' bandwidth: all with adaptive routing; where
  // ECMP hashes as many flows onto as many uplinks, 1 - 1/e = 0.63 on average.
  double cross_leaf_share = 1.0;
  // Standard deviation of GPUs' speeds, one kind of GPU, over their mean: all wait for the slowest.
  // Sinha et al. (SC 2022): GPUs of one kind in six clusters differ by 8 % in GEMMs, whisker to
  // whisker of a box plot, which is 5.4 standard deviations of a normal distribution.
  double gpu_speed_spread = 0.015;

  int gpus() const { return nodes * gpus_per_node; }
  int node_of(int gpu) const { return gpu / gpus_per_node; }
  // Of all NICs, numbered node by node.
  int nic_of(int gpu) const {
    return node_of(gpu) * nics_per_node + gpu % gpus_per_node * nics_per_node / gpus_per_node;
  }
  // The leaf of the GPU's node, or its group of rails: two GPUs of one reach each other without a
  // spine.
  int leaf_of(int gpu) const { return node_of(gpu) / topology.nodes_per_leaf; }

  // GPUs of one domain reach each other over NVLink.
  int nodes_per_domain() const {
    return topology.nvlink_domain == 0 ? 1 : topology.nvlink_domain / gpus_per_node;
  }
  int gpus_per_domain() const { return nodes_per_domain() * gpus_per_node; }
  int nics_per_domain() const { return nodes_per_domain() * nics_per_node; }
  int domain_of(int gpu) const { return gpu / gpus_per_domain(); }
  int domains() const { return domain_of(gpus() - 1) + 1; }

  bool operator==(const ClusterSpec&) const = default;
};

}  // namespace mllmsim
