// Who remembers routes gives what the network gives, and the links of every program that it would
// have without memory, whatever it was asked before.
#include "strategies/lower/known_routes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace mllmsim::lower {
namespace {

int upto(int n) { return *rc::gen::inRange(0, n); }

ClusterSpec random_cluster() {
  ClusterSpec c;
  c.nodes = 2 + upto(4);
  c.gpus_per_node = 4;
  c.nics_per_node = *rc::gen::element(1, 2, 4);
  c.nvlink_bandwidth = {300e9};
  c.nic_bandwidth = {25e9};
  c.topology.kind = *rc::gen::element(TopologyKind::leaf_spine, TopologyKind::rail_optimised);
  c.topology.nodes_per_leaf = 1 + upto(2);
  return c;
}

// Of few, so that some come again.
std::pair<int, int> random_pair(const ClusterSpec& c) { return {upto(3), c.gpus() - 1 - upto(3)}; }

bool same(const RouteLinks& a, const RouteLinks& b, const Program& program) {
  const auto same_use = [](const RouteLinks::Use& x, const RouteLinks::Use& y) {
    return x.link == y.link && x.bytes == y.bytes && x.bandwidth == y.bandwidth;
  };
  bool all = a.links() == b.links();
  for (std::uint32_t r = 0; r < program.routes(); ++r)
    all &= std::ranges::equal(a.of({r}), b.of({r}), same_use);
  return all;
}

RC_GTEST_PROP(KnownRoutes, AreThoseOfTheNetwork, ()) {
  const Network network(random_cluster());
  const ClusterSpec& c = network.spec();
  KnownRoutes known(network);
  for (int steps = 1 + upto(8); steps > 0; --steps) {
    Network::SeenNodes seen;
    if (upto(2) == 0) {
      seen.resize(static_cast<std::size_t>(c.nodes));
      seen[static_cast<std::size_t>(upto(2))] = true;
    }
    known.see(seen);
    Program program(1);
    for (int routes = upto(3); routes > 0; --routes) {
      const Bytes bytes{1 + upto(2)};
      const std::vector<std::pair<int, int>> pairs{random_pair(c), random_pair(c)};
      const std::vector<LinkUse> messages = known.messages(pairs, bytes);
      RC_ASSERT(messages == network.messages(pairs, bytes, seen));
      const std::vector<std::vector<int>> groups{{upto(2), 2, c.gpus() - 1}, {3, c.gpus() - 2}};
      const std::vector<LinkUse> rings = known.rings(groups, bytes * 1000);
      RC_ASSERT(rings == network.rings(groups, bytes * 1000, seen));
      program.add_route(messages);
      program.add_route(rings);
    }
    RC_ASSERT(same(known.links(program), RouteLinks(network.link_bandwidths(), program), program));
  }
}

}  // namespace
}  // namespace mllmsim::lower
