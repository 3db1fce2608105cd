#include "sim/world/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

// Sums bytes per link and returns them in link order,
// so that results do not depend on insertion order.
class Load {
 public:
  // Links between switches, the last of all, carry most of the parts: they have sums of their own.
  Load(LinkId first_switch_link, std::size_t links)
      : first_switch_link_(first_switch_link.value), switches_(links - first_switch_link_, 0.0) {}

  void add(LinkId link, double bytes) {
    if (link.value < first_switch_link_)
      parts_.push_back({link, bytes});
    else
      switches_[link.value - first_switch_link_] += bytes;
  }
  std::vector<LinkUse> uses() {
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const Part& a, const Part& b) { return a.link < b.link; });
    std::vector<LinkUse> out;
    for (std::size_t i = 0; i < parts_.size();) {
      const LinkId link = parts_[i].link;
      double sum = 0;
      for (; i < parts_.size() && parts_[i].link == link; ++i) sum += parts_[i].bytes;
      out.push_back({link, {std::llround(sum)}});
    }
    for (std::uint32_t l = 0; l < switches_.size(); ++l)
      if (switches_[l] > 0) out.push_back({{first_switch_link_ + l}, {std::llround(switches_[l])}});
    return out;
  }

 private:
  struct Part {
    LinkId link;
    double bytes;
  };
  std::uint32_t first_switch_link_;
  std::vector<Part> parts_;       // on the links of nodes
  std::vector<double> switches_;  // bytes by link
};

// What flows between whom if each of `from` has an equal part of the bytes to send, and each of
// `to` an equal part to receive: the overlaps of [0, 1) cut into as many pieces as there are
// senders, and as receivers.
template <class Flow>
void for_each_flow(std::span<const int> from, std::span<const int> to, double bytes, Flow flow) {
  const std::size_t all = from.size() * to.size();
  for (std::size_t at = 0; at < all;) {
    const std::size_t i = at / to.size(), j = at / from.size();
    const std::size_t end = std::min((i + 1) * to.size(), (j + 1) * from.size());
    flow(from[i], to[j], bytes * static_cast<double>(end - at) / static_cast<double>(all));
    at = end;
  }
}

}  // namespace

Network::Network(const ClusterSpec& spec) : spec_(spec) {
  check(spec_.nodes > 0 && spec_.gpus_per_node > 0, "a cluster has nodes and GPUs");
  check(spec_.gpus_per_domain() > 0, "an NVLink domain has at least a node");
  fabric_ = fabric_of(spec_);
  place_gpus();
  const auto gpus = static_cast<std::size_t>(spec_.gpus());
  const std::size_t nics = fabric_.switches.empty() ? 0 : fabric_.switch_of_nic.size();
  bandwidths_.reserve(2 * (2 * gpus + nics + fabric_.cables.size()));
  add_edges(gpus, spec_.nvlink_bandwidth);
  first_switch_link_ = link_of(gpus);
  if (fabric_.switches.empty()) return;
  add_edges(gpus, spec_.nvlink_bandwidth);
  std::vector<int> ports(fabric_.switches.size(), 0);
  nics_.reserve(nics);
  for (const int on : fabric_.switch_of_nic) {
    const auto number = static_cast<int>(nics_.size());
    nics_.push_back({link_of(2 * gpus + nics_.size()), on, ports[static_cast<std::size_t>(on)]++});
    const int first = number / spec_.nics_per_node * spec_.nics_per_node;
    one_switch_per_node_ &= on == nics_[static_cast<std::size_t>(first)].on;
  }
  add_edges(nics, spec_.nic_bandwidth);
  first_switch_link_ = link_of(2 * gpus + nics);
  switches_ = std::make_unique<SwitchRoutes>(fabric_, first_switch_link_);
  for (const Fabric::Cable& c : fabric_.cables) add_edges(1, c.bandwidth);
}

void Network::place_gpus() {
  places_.reserve(static_cast<std::size_t>(spec_.gpus()));
  std::vector<int> nic_in_node;
  for (int g = 0; g < spec_.gpus_per_node; ++g) nic_in_node.push_back(spec_.nic_of(g));
  for (int node = 0; node < spec_.nodes; ++node) {
    const int domain = spec_.domain_of(node * spec_.gpus_per_node);
    for (const int nic : nic_in_node)
      places_.push_back({node, domain, node * spec_.nics_per_node + nic});
  }
}

void Network::add_edges(std::size_t count, BytesPerSecond bandwidth) {
  bandwidths_.insert(bandwidths_.end(), 2 * count, bandwidth);
}

std::pair<Network::Device, Network::Device> Network::ends(LinkId link) const {
  const int gpus = spec_.gpus(), nics = static_cast<int>(nics_.size());
  auto edge = static_cast<int>(link.value / 2);
  std::pair<Device, Device> out;
  if (edge < gpus) {
    out = {{DeviceKind::gpu, edge}, {DeviceKind::nvswitch, spec_.domain_of(edge)}};
  } else if ((edge -= gpus) < gpus) {
    out = {{DeviceKind::gpu, edge}, {DeviceKind::nic, spec_.nic_of(edge)}};
  } else if ((edge -= gpus) < nics) {
    out = {{DeviceKind::nic, edge},
           {DeviceKind::network_switch, nics_[static_cast<std::size_t>(edge)].on}};
  } else {
    const Fabric::Cable& cable = fabric_.cables[static_cast<std::size_t>(edge - nics)];
    out = {{DeviceKind::network_switch, cable.a}, {DeviceKind::network_switch, cable.b}};
  }
  if (link.value % 2 == 1) std::swap(out.first, out.second);
  return out;
}

std::string Network::name_of(const Device& device) const {
  switch (device.kind) {
    case DeviceKind::gpu:
      return fmt::format("gpu{}", device.number);
    case DeviceKind::nvswitch:
      return fmt::format("nvswitch{}", device.number);
    case DeviceKind::nic:
      return fmt::format("nic{}", device.number);
    case DeviceKind::network_switch:
      return fabric_.switches[static_cast<std::size_t>(device.number)];
  }
  return {};
}

std::string Network::link_name(LinkId id) const {
  const auto [from, to] = ends(id);
  return name_of(from) + "->" + name_of(to);
}

std::optional<int> Network::node_of(LinkId id) const {
  const auto [from, to] = ends(id);
  for (const Device& d : {from, to}) {
    if (d.kind == DeviceKind::gpu) return spec_.node_of(d.number);
    if (d.kind == DeviceKind::nic) return d.number / spec_.nics_per_node;
  }
  return std::nullopt;
}

// The GPU of the sender's node whose NIC is nearest to the receiver's; the sender if it is as near.
int Network::departure(int from_gpu, int to_gpu) const {
  if (one_switch_per_node_) return from_gpu;
  const int to = nic(to_gpu).on;
  int best = from_gpu, hops = switches_->hops(nic(from_gpu).on, to);
  const int first = place(from_gpu).node * spec_.gpus_per_node;
  for (int g = first; hops > 0 && g < first + spec_.gpus_per_node; ++g)
    if (const int other = switches_->hops(nic(g).on, to); other < hops) best = g, hops = other;
  return best;
}

// Gives each link of the way to `add`, but for those of nodes that are not seen.
template <class Add>
void Network::walk_route(int from_gpu, int to_gpu, const SeenNodes& seen, const Add& add) const {
  if (from_gpu == to_gpu) return;
  const auto sees = [&](int gpu) {
    return seen.empty() || seen[static_cast<std::size_t>(place(gpu).node)];
  };
  const bool nvlink = place(from_gpu).domain == place(to_gpu).domain;
  const int over_nvlink_to = nvlink ? to_gpu : departure(from_gpu, to_gpu);
  if (over_nvlink_to != from_gpu) {
    if (sees(from_gpu)) add(to_nvswitch(from_gpu));
    if (sees(over_nvlink_to)) add(reverse(to_nvswitch(over_nvlink_to)));
  }
  if (nvlink) return;
  const Nic &out = nic(over_nvlink_to), &in = nic(to_gpu);
  if (sees(over_nvlink_to)) {
    add(to_nic(over_nvlink_to));
    add(out.up);
  }
  switches_->walk(out.on, in.on, in.port, add);
  if (sees(to_gpu)) {
    add(reverse(in.up));
    add(reverse(to_nic(to_gpu)));
  }
}

std::vector<LinkId> Network::route(int from_gpu, int to_gpu) const {
  std::vector<LinkId> links;
  walk_route(from_gpu, to_gpu, {}, [&](LinkId link) { links.push_back(link); });
  return links;
}

std::vector<LinkUse> Network::messages(const std::vector<std::pair<int, int>>& from_to, Bytes bytes,
                                       const SeenNodes& seen) const {
  Load load(first_switch_link_, bandwidths_.size());
  const auto amount = static_cast<double>(bytes.value);
  for (const auto& [from, to] : from_to)
    walk_route(from, to, seen, [&](LinkId link) { load.add(link, amount); });
  return load.uses();
}

std::vector<LinkUse> Network::rings(const std::vector<std::vector<int>>& groups, Bytes bytes,
                                    const SeenNodes& seen) const {
  Load load(first_switch_link_, bandwidths_.size());
  const auto amount = static_cast<double>(bytes.value);
  const auto domain_of = [&](int gpu) { return place(gpu).domain; };
  for (std::vector<int> group : groups) {
    if (group.empty()) continue;
    if (!std::ranges::is_sorted(group, {}, domain_of))
      std::ranges::stable_sort(group, {}, domain_of);
    std::vector<std::span<const int>> domains;  // each with its members
    for (std::size_t i = 0, begin = 0; i < group.size(); begin = i) {
      while (i < group.size() && domain_of(group[i]) == domain_of(group[begin])) ++i;
      domains.push_back(std::span<const int>(group).subspan(begin, i - begin));
    }
    if (domains.size() == 1 || group.size() > domains.size())
      for (int g : group) {
        if (!seen.empty() && !seen[static_cast<std::size_t>(place(g).node)]) continue;
        load.add(to_nvswitch(g), amount);
        load.add(reverse(to_nvswitch(g)), amount);
      }
    if (domains.size() == 1) continue;
    std::span<const int> previous = domains.back();
    for (const std::span<const int> members : domains) {
      for_each_flow(previous, members, amount, [&](int from, int to, double part) {
        walk_route(from, to, seen, [&](LinkId link) { load.add(link, part); });
      });
      previous = members;
    }
  }
  return load.uses();
}

}  // namespace mllmsim
