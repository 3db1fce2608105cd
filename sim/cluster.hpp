// The machines: nodes of GPUs behind an NVSwitch, NICs, and a two-level network.
//
//   gpu --- nvswitch        every GPU to its node's switch, nvlink_bandwidth each way
//   gpu --- nic --- leaf    GPU g of a node uses NIC g * nics / gpus;
//                           a leaf serves nodes_per_leaf nodes
//   leaf === spine          one aggregate uplink per leaf:
//                           its nodes' NIC bandwidth / oversubscription
//
// Every edge is two directed links, one each way. Bandwidths are per direction. Latencies are not
// here: they belong to the calibration.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.hpp"

namespace mllmsim {

using LinkId = Id<struct LinkTag>;

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
  int nodes_per_leaf = 32;
  double oversubscription = 1.0;
  // What a collective between leaves gets of its NICs' bandwidth: all with adaptive routing; where
  // ECMP hashes as many flows onto as many uplinks, 1 - 1/e = 0.63 on average.
  double cross_leaf_share = 1.0;
  // Standard deviation of the speeds of GPUs of one kind, over their mean.
  // All wait for the slowest.
  double gpu_speed_spread = 0;

  int gpus() const { return nodes * gpus_per_node; }
  int node_of(int gpu) const { return gpu / gpus_per_node; }
  // Network bandwidth of one GPU when all GPUs of its node communicate at once.
  BytesPerSecond network_bandwidth_per_gpu() const {
    return nic_bandwidth * static_cast<double>(nics_per_node) / static_cast<double>(gpus_per_node);
  }
};

// How much one transfer puts on one link.
struct LinkUse {
  LinkId link;
  Bytes bytes;
};

class Network {
 public:
  explicit Network(const ClusterSpec& spec);

  const ClusterSpec& spec() const { return spec_; }
  const std::vector<BytesPerSecond>& link_bandwidths() const { return bandwidths_; }
  std::string link_name(LinkId link) const;
  // The node at an end of the link; none for leaf-spine links.
  std::optional<int> node_of(LinkId link) const;

  // Links of the shortest route, in order; empty if from == to.
  std::vector<LinkId> route(int from_gpu, int to_gpu) const;

  // Load of point-to-point messages that travel together, all of the same size.
  std::vector<LinkUse> messages(const std::vector<std::pair<int, int>>& from_to, Bytes bytes) const;

  // Load of ring collectives that run together, one for each group of GPUs. `bytes` is what each
  // GPU sends in all ((n-1)/n of the buffer for an all-gather or reduce-scatter, twice that for
  // an all-reduce). Traffic that leaves a node is spread over the NICs of the group's GPUs there,
  // as NCCL's channels are.
  std::vector<LinkUse> rings(const std::vector<std::vector<int>>& groups, Bytes bytes) const;

 private:
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                            boost::property<boost::edge_index_t, std::uint32_t>>;
  using Vertex = Graph::vertex_descriptor;

  std::size_t vertices() const;
  void connect(Vertex a, Vertex b, BytesPerSecond bandwidth);
  Vertex gpu(int g) const { return static_cast<Vertex>(g); }
  Vertex nvswitch(int node) const;
  Vertex nic_of(int gpu) const;
  Vertex leaf(int index) const;
  Vertex spine() const;
  int leaves() const;
  LinkId link(Vertex from, Vertex to) const;

  ClusterSpec spec_;
  Graph graph_;
  std::vector<BytesPerSecond> bandwidths_;
  std::vector<std::pair<Vertex, Vertex>> ends_;
};

}  // namespace mllmsim
