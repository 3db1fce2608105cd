// Shortest ways between the switches of a fabric, found by a breadth-first search on a Boost.Graph.
//
// What is kept is what switches keep: for a destination, the next links that are on a shortest way
// to it. A destination is searched when it is first asked for, whichever thread asks. Of several
// next links the destination's port chooses, as in static fat-tree routing (d-mod-k: Zahavi, JPDC
// 2012), so a pair of ports always has the same way and neighbours spread over the spines.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/world/fabric.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

class SwitchRoutes {
 public:
  // Cable i is the links first_link + 2 i, from a to b, and first_link + 2 i + 1 back.
  SwitchRoutes(const Fabric& fabric, LinkId first_link);
  ~SwitchRoutes();

  static constexpr int kUnreachable = 1 << 30;
  int hops(int from, int to) const {
    return from == to ? 0 : table(to).hops[static_cast<std::size_t>(from)];
  }
  // Gives each link of the way to the switch whose port is the destination to `add`.
  template <class Add>
  void walk(int from, int to, int port, const Add& add) const {
    if (from == to) return;
    const Table& t = table(to);
    for (auto at = static_cast<std::size_t>(from); at != static_cast<std::size_t>(to);) {
      const std::size_t choices = t.first[at + 1] - t.first[at];
      check(choices > 0, "no way between these switches");
      const Edge& edge =
          t.next[t.first[at] + (choices == 1 ? 0 : static_cast<std::size_t>(port) % choices)];
      add(edge.link);
      at = edge.to;
    }
  }

 private:
  struct Graph;
  struct Edge {
    LinkId link;
    std::size_t to = 0;
  };
  struct Table {
    std::atomic<bool> searched = false;
    std::vector<int> hops;  // by switch
    // By switch, its place in `next`, which ends at the following one's.
    std::vector<std::size_t> first;
    std::vector<Edge> next;
  };
  const Table& table(int to) const {
    const Table& t = tables_[static_cast<std::size_t>(to)];
    if (!t.searched.load(std::memory_order_acquire)) search(to);
    return t;
  }
  void search(int to) const;

  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Table[]> tables_;  // by destination
  mutable std::mutex searching_;
};

}  // namespace mllmsim
