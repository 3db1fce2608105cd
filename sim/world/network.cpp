#include "sim/world/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <map>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

// Sums bytes per link and returns them in link order,
// so that results do not depend on insertion order.
class Load {
 public:
  void add(LinkId link, double bytes) { bytes_[link] += bytes; }
  std::vector<LinkUse> uses() const {
    std::vector<LinkUse> out;
    out.reserve(bytes_.size());
    for (const auto& [link, bytes] : bytes_) out.push_back({link, {std::llround(bytes)}});
    return out;
  }

 private:
  std::map<LinkId, double> bytes_;
};

}  // namespace

struct Network::Graph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                            boost::property<boost::edge_index_t, std::uint32_t>> {
  using adjacency_list::adjacency_list;
};

Network::~Network() = default;

// Vertices in order: GPUs, NVSwitches (one per node), NICs, leaves, spine.
Network::Network(const ClusterSpec& spec)
    : spec_(spec), graph_(std::make_unique<Graph>(vertices())) {
  const int nics = spec_.nodes * spec_.nics_per_node;
  for (int g = 0; g < spec_.gpus(); ++g)
    connect(gpu(g), nvswitch(spec_.node_of(g)), spec_.nvlink_bandwidth);
  if (spec_.nodes == 1) return;
  check(spec_.nics_per_node > 0, "several nodes need NICs");
  for (int g = 0; g < spec_.gpus(); ++g) connect(gpu(g), nic_of(g), spec_.nvlink_bandwidth);
  for (int n = 0; n < nics; ++n) {
    const auto nic = static_cast<Vertex>(spec_.gpus() + spec_.nodes + n);
    connect(nic, leaf(n / spec_.nics_per_node / spec_.nodes_per_leaf), spec_.nic_bandwidth);
  }
  for (int l = 0; leaves() > 1 && l < leaves(); ++l) {
    const double ports = static_cast<double>(spec_.nodes_per_leaf * spec_.nics_per_node);
    connect(leaf(l), spine(), spec_.nic_bandwidth * (ports / spec_.oversubscription));
  }
}

void Network::connect(Vertex a, Vertex b, BytesPerSecond bandwidth) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    boost::add_edge(from, to, static_cast<std::uint32_t>(bandwidths_.size()), *graph_);
    bandwidths_.push_back(bandwidth);
    ends_.emplace_back(from, to);
  }
}

std::size_t Network::vertices() const {
  check(spec_.nodes > 0 && spec_.gpus_per_node > 0, "a cluster has nodes and GPUs");
  return static_cast<std::size_t>(spine()) + 1;
}

int Network::leaves() const {
  return (spec_.nodes + spec_.nodes_per_leaf - 1) / spec_.nodes_per_leaf;
}

Network::Vertex Network::nvswitch(int node) const {
  return static_cast<Vertex>(spec_.gpus() + node);
}
Network::Vertex Network::nic_of(int g) const {
  const int local = g % spec_.gpus_per_node * spec_.nics_per_node / spec_.gpus_per_node;
  return static_cast<Vertex>(spec_.gpus() + spec_.nodes + spec_.node_of(g) * spec_.nics_per_node +
                             local);
}
Network::Vertex Network::leaf(int index) const {
  return static_cast<Vertex>(spec_.gpus() + spec_.nodes + spec_.nodes * spec_.nics_per_node +
                             index);
}
Network::Vertex Network::spine() const { return leaf(leaves()); }

LinkId Network::link(Vertex from, Vertex to) const {
  // connect() adds both directions one after the other; the end with fewer links is searched.
  const bool back = boost::out_degree(from, *graph_) > boost::out_degree(to, *graph_);
  const auto [edge, found] = boost::edge(back ? to : from, back ? from : to, *graph_);
  check(found, "no link between these devices");
  return {boost::get(boost::edge_index, *graph_, edge) ^ (back ? 1U : 0U)};
}

std::string Network::link_name(LinkId id) const {
  const auto name = [&](Vertex v) {
    auto i = static_cast<int>(v);
    if (i < spec_.gpus()) return fmt::format("gpu{}", i);
    if ((i -= spec_.gpus()) < spec_.nodes) return fmt::format("nvswitch{}", i);
    if ((i -= spec_.nodes) < spec_.nodes * spec_.nics_per_node) return fmt::format("nic{}", i);
    if ((i -= spec_.nodes * spec_.nics_per_node) < leaves()) return fmt::format("leaf{}", i);
    return std::string("spine");
  };
  const auto& [from, to] = ends_[id.value];
  return name(from) + "->" + name(to);
}

std::optional<int> Network::node_of(LinkId id) const {
  for (Vertex v : {ends_[id.value].first, ends_[id.value].second}) {
    auto i = static_cast<int>(v);
    if (i < spec_.gpus()) return spec_.node_of(i);
    if ((i -= spec_.gpus()) < spec_.nodes) return i;
    if ((i -= spec_.nodes) < spec_.nodes * spec_.nics_per_node) return i / spec_.nics_per_node;
  }
  return std::nullopt;
}

// The graph is a tree but for the NVSwitches, so the shortest way is known: through the node's
// NVSwitch, otherwise up to the first switch that both sides share.
std::vector<LinkId> Network::route(int from_gpu, int to_gpu) const {
  if (from_gpu == to_gpu) return {};
  const int from_node = spec_.node_of(from_gpu), to_node = spec_.node_of(to_gpu);
  std::vector<Vertex> stops;
  if (from_node == to_node) {
    stops = {gpu(from_gpu), nvswitch(from_node), gpu(to_gpu)};
  } else {
    const Vertex up = leaf(from_node / spec_.nodes_per_leaf);
    const Vertex down = leaf(to_node / spec_.nodes_per_leaf);
    stops = {gpu(from_gpu), nic_of(from_gpu), up};
    if (up != down) stops.insert(stops.end(), {spine(), down});
    stops.insert(stops.end(), {nic_of(to_gpu), gpu(to_gpu)});
  }
  std::vector<LinkId> links;
  for (std::size_t i = 0; i + 1 < stops.size(); ++i) links.push_back(link(stops[i], stops[i + 1]));
  return links;
}

std::vector<LinkUse> Network::messages(const std::vector<std::pair<int, int>>& from_to,
                                       Bytes bytes) const {
  Load load;
  for (const auto& [from, to] : from_to)
    for (LinkId l : route(from, to)) load.add(l, static_cast<double>(bytes.value));
  return load.uses();
}

std::vector<LinkUse> Network::rings(const std::vector<std::vector<int>>& groups,
                                    Bytes bytes) const {
  Load load;
  const auto amount = static_cast<double>(bytes.value);
  for (const std::vector<int>& group : groups) {
    std::map<int, std::vector<int>> by_node;
    for (int g : group) by_node[spec_.node_of(g)].push_back(g);
    if (by_node.size() == 1 || group.size() > by_node.size())
      for (int g : group) {
        load.add(link(gpu(g), nvswitch(spec_.node_of(g))), amount);
        load.add(link(nvswitch(spec_.node_of(g)), gpu(g)), amount);
      }
    if (by_node.size() == 1) continue;
    int previous_leaf = by_node.rbegin()->first / spec_.nodes_per_leaf;
    for (const auto& [node, members] : by_node) {
      const int l = node / spec_.nodes_per_leaf;
      const double share = amount / static_cast<double>(members.size());
      for (int g : members) {
        load.add(link(gpu(g), nic_of(g)), share);
        load.add(link(nic_of(g), leaf(l)), share);
        load.add(link(leaf(l), nic_of(g)), share);
        load.add(link(nic_of(g), gpu(g)), share);
      }
      if (l != previous_leaf) {
        load.add(link(leaf(previous_leaf), spine()), amount);
        load.add(link(spine(), leaf(l)), amount);
      }
      previous_leaf = l;
    }
  }
  return load.uses();
}

}  // namespace mllmsim
