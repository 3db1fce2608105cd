// Shortest ways between the switches of a fabric, found by a breadth-first search on a Boost.Graph.
//
// What is kept is what switches keep: for a destination, the next links that are on a shortest way
// to it. A destination is searched when it is first asked for, whichever thread asks. Of several
// next links the destination's port chooses, as in static fat-tree routing (d-mod-k: Zahavi, JPDC
// 2012), so a pair of ports always has the same way and neighbours spread over the spines.
#pragma once

#include <memory>
#include <vector>

#include "sim/world/fabric.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

class SwitchRoutes {
 public:
  // Cable i is the links first_link + 2 i, from a to b, and first_link + 2 i + 1 back.
  SwitchRoutes(const Fabric& fabric, LinkId first_link);
  ~SwitchRoutes();

  static constexpr int kUnreachable = 1 << 30;
  int hops(int from, int to) const;
  // Appends the links of the way to the switch whose port is the destination.
  void append(int from, int to, int port, std::vector<LinkId>& links) const;

 private:
  struct Graph;
  struct Table;
  const Table& table(int to) const;

  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Table[]> tables_;  // by destination
};

}  // namespace mllmsim
