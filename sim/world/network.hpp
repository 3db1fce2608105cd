// The cluster's devices, switches and links, the routes between GPUs, and the load that transfers
// put on links.
//
//   in an NVLink domain   gpu -> nvswitch -> gpu
//   between domains       gpu (-> nvswitch -> gpu') -> nic -> leaf (-> spine -> leaf) -> nic -> gpu
//
// From leaf to leaf the network finds the way: the shortest on the graph of its switches
// (sim/world/switch_routes.hpp). Which NIC to leave by is the sender's choice: its own, unless that
// of another GPU of its node is nearer to the receiver. That is NCCL's PXN: with rails, traffic for
// another rail goes over NVLink to the GPU on that rail and stays on the rail's switches
// (nccl/src/graph/paths.cc; "Doubling all2all Performance with NVIDIA Collective Communication
// Library 2.12", NVIDIA blog, 2022). A const Network may be used by several threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/world/cluster.hpp"
#include "sim/world/fabric.hpp"
#include "sim/world/links.hpp"
#include "sim/world/switch_routes.hpp"

namespace mllmsim {

class Network {
 public:
  explicit Network(const ClusterSpec& spec);

  const ClusterSpec& spec() const { return spec_; }
  const std::vector<BytesPerSecond>& link_bandwidths() const { return bandwidths_; }
  std::string link_name(LinkId link) const;
  // The node at an end of the link; none between switches.
  std::optional<int> node_of(LinkId link) const;

  // Links in order; none if from == to.
  std::vector<LinkId> route(int from_gpu, int to_gpu) const;

  // Nodes whose own links are of interest, by number; empty: all. Links between switches always
  // are.
  using SeenNodes = std::vector<bool>;

  // Load of point-to-point messages that travel together, all of the same size.
  std::vector<LinkUse> messages(const std::vector<std::pair<int, int>>& from_to, Bytes bytes,
                                const SeenNodes& seen = {}) const;

  // Load of ring collectives that run together, one for each group of GPUs. `bytes` is what each
  // GPU sends in all ((n-1)/n of the buffer for an all-gather or reduce-scatter, twice that for
  // an all-reduce). Rings go from domain to domain in order; traffic that leaves a domain is spread
  // over the NICs of the group's GPUs there, as NCCL's channels are.
  std::vector<LinkUse> rings(const std::vector<std::vector<int>>& groups, Bytes bytes,
                             const SeenNodes& seen = {}) const;

 private:
  enum class DeviceKind : std::uint8_t { gpu, nvswitch, nic, network_switch };
  struct Device {
    DeviceKind kind = DeviceKind::gpu;
    int number = 0;
  };
  struct Nic {
    LinkId up;  // to its switch
    int on = 0;
    int port = 0;
  };

  // Edges are numbered in this order: every GPU to its NVSwitches, every GPU to its NIC, every NIC
  // to its switch, cables between switches. Edge e is the links 2 e, and 2 e + 1 back.
  static LinkId link_of(std::size_t edge) { return {static_cast<std::uint32_t>(2 * edge)}; }
  std::pair<Device, Device> ends(LinkId link) const;
  void add_edges(std::size_t count, BytesPerSecond bandwidth);
  static LinkId reverse(LinkId link) { return {link.value ^ 1U}; }
  std::string name_of(const Device& device) const;
  // Where a GPU is: very many are asked for, and dividing takes its time.
  struct Place {
    int node = 0, domain = 0, nic = 0;
  };
  void place_gpus();
  const Place& place(int gpu) const { return places_[static_cast<std::size_t>(gpu)]; }
  const Nic& nic(int gpu) const { return nics_[static_cast<std::size_t>(place(gpu).nic)]; }
  LinkId to_nvswitch(int gpu) const { return link_of(static_cast<std::size_t>(gpu)); }
  LinkId to_nic(int gpu) const {
    return link_of(static_cast<std::size_t>(spec_.gpus()) + static_cast<std::size_t>(gpu));
  }
  int departure(int from_gpu, int to_gpu) const;
  template <class Add>
  void walk_route(int from_gpu, int to_gpu, const SeenNodes& seen, const Add& add) const;

  ClusterSpec spec_;
  Fabric fabric_;
  std::vector<BytesPerSecond> bandwidths_;
  std::vector<Place> places_;  // by GPU
  std::vector<Nic> nics_;
  bool one_switch_per_node_ = true;  // of all NICs of a node
  LinkId first_switch_link_;         // those between switches come last
  std::unique_ptr<SwitchRoutes> switches_;
};

}  // namespace mllmsim
