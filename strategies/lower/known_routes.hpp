// What messages and rings put on the links of a network, and the links that decide among those of a
// program (sim/kernel/route_links.hpp): found once, remembered for the steps and jobs that follow.
// Points of a sweep and steps of a pass load the same links. Not for several threads.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/kernel/program.hpp"
#include "sim/kernel/route_links.hpp"
#include "sim/world/network.hpp"

namespace mllmsim::lower {

class KnownRoutes {
 public:
  explicit KnownRoutes(const Network& network) : network_(network) {}
  KnownRoutes(const KnownRoutes&) = delete;
  KnownRoutes& operator=(const KnownRoutes&) = delete;

  // As the network's, of these nodes from here on.
  void see(Network::SeenNodes seen);
  const std::vector<LinkUse>& messages(const std::vector<std::pair<int, int>>& from_to,
                                       Bytes bytes);
  const std::vector<LinkUse>& rings(const std::vector<std::vector<int>>& groups, Bytes bytes);

  // Valid until the next call.
  const RouteLinks& links(const Program& program);

 private:
  const Network& network_;
  Network::SeenNodes seen_;
  std::map<std::pair<std::vector<std::pair<int, int>>, Bytes>, std::vector<LinkUse>> messages_;
  std::map<std::pair<std::vector<std::vector<int>>, Bytes>, std::vector<LinkUse>> rings_;
  // Of the latest program.
  Program::Routes routes_;
  std::optional<RouteLinks> links_;
};

}  // namespace mllmsim::lower
