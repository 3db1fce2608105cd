#include "sim/world/fabric.hpp"

#include <fmt/format.h>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

// Leaves of nodes_per_leaf nodes each, and spines between them. Of every node, `nics` NICs from
// `first` on are plugged into its leaf.
void add_plane(Fabric& fabric, const ClusterSpec& spec, const std::string& name, int first,
               int nics) {
  const Topology& t = spec.topology;
  const int leaves = (spec.nodes - 1) / t.nodes_per_leaf + 1;
  const auto leaf0 = static_cast<int>(fabric.switches.size());
  for (int l = 0; l < leaves; ++l) fabric.switches.push_back(fmt::format("{}leaf{}", name, l));
  for (int node = 0; node < spec.nodes; ++node)
    for (int nic = first; nic < first + nics; ++nic)
      fabric
          .switch_of_nic[static_cast<std::size_t>(std::int64_t{node} * spec.nics_per_node + nic)] =
          leaf0 + node / t.nodes_per_leaf;
  if (leaves == 1) return;
  const int spine0 = leaf0 + leaves;
  for (int s = 0; s < t.spines; ++s) fabric.switches.push_back(fmt::format("{}spine{}", name, s));
  const auto ports = static_cast<double>(t.nodes_per_leaf * nics);
  const BytesPerSecond uplinks = spec.nic_bandwidth * (ports / t.oversubscription);
  for (int l = 0; l < leaves; ++l)
    for (int s = 0; s < t.spines; ++s)
      fabric.cables.push_back({leaf0 + l, spine0 + s, uplinks / static_cast<double>(t.spines)});
}

}  // namespace

Fabric fabric_of(const ClusterSpec& spec) {
  Fabric fabric;
  if (spec.domains() == 1) return fabric;
  check(spec.nics_per_node > 0, "several NVLink domains need NICs");
  fabric.switch_of_nic.resize(
      static_cast<std::size_t>(std::int64_t{spec.nodes} * spec.nics_per_node));
  switch (spec.topology.kind) {
    case TopologyKind::leaf_spine:
      add_plane(fabric, spec, "", 0, spec.nics_per_node);
      break;
    case TopologyKind::rail_optimised:
      for (int rail = 0; rail < spec.nics_per_node; ++rail)
        add_plane(fabric, spec, fmt::format("rail{}.", rail), rail, 1);
      break;
    case TopologyKind::nvlink_domain:
      check(false, "no network between NVLink domains");
  }
  return fabric;
}

}  // namespace mllmsim
