// The cluster's devices, switches and links as a graph, and the load that transfers put on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/world/cluster.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

class Network {
 public:
  explicit Network(const ClusterSpec& spec);
  ~Network();

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
  struct Graph;  // of Boost.Graph, which only network.cpp includes
  using Vertex = std::size_t;

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
  std::unique_ptr<Graph> graph_;
  std::vector<BytesPerSecond> bandwidths_;
  std::vector<std::pair<Vertex, Vertex>> ends_;
};

}  // namespace mllmsim
