#include "sim/world/switch_routes.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <mutex>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

struct Edge {
  LinkId link;
  std::size_t to = 0;
};

}  // namespace

struct SwitchRoutes::Graph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge> {
  using adjacency_list::adjacency_list;
};

struct SwitchRoutes::Table {
  std::once_flag searched;
  std::vector<int> hops;  // by switch
  std::vector<std::size_t>
      first;  // by switch: its place in `next`, which ends at the following one
  std::vector<Edge> next;
};

SwitchRoutes::SwitchRoutes(const Fabric& fabric, LinkId first_link)
    : graph_(std::make_unique<Graph>(fabric.switches.size())),
      tables_(std::make_unique<Table[]>(fabric.switches.size())) {
  std::uint32_t link = first_link.value;
  for (const Fabric::Cable& cable : fabric.cables) {
    const auto a = static_cast<std::size_t>(cable.a), b = static_cast<std::size_t>(cable.b);
    boost::add_edge(a, b, Edge{{link++}, b}, *graph_);
    boost::add_edge(b, a, Edge{{link++}, a}, *graph_);
  }
}

SwitchRoutes::~SwitchRoutes() = default;

const SwitchRoutes::Table& SwitchRoutes::table(int to) const {
  Table& t = tables_[static_cast<std::size_t>(to)];
  std::call_once(t.searched, [&] {
    const auto destination = static_cast<std::size_t>(to);
    const std::size_t switches = boost::num_vertices(*graph_);
    t.hops.assign(switches, kUnreachable);
    t.hops[destination] = 0;
    // Cables go both ways, so the way from the destination is as long as the way to it.
    const auto count_hops = boost::record_distances(t.hops.data(), boost::on_tree_edge());
    boost::breadth_first_search(*graph_, destination,
                                boost::visitor(boost::make_bfs_visitor(count_hops)));
    for (std::size_t from = 0; from < switches; ++from) {
      t.first.push_back(t.next.size());
      for (const auto& e : boost::make_iterator_range(boost::out_edges(from, *graph_)))
        if (const Edge& edge = (*graph_)[e]; t.hops[edge.to] + 1 == t.hops[from])
          t.next.push_back(edge);
    }
    t.first.push_back(t.next.size());
  });
  return t;
}

int SwitchRoutes::hops(int from, int to) const {
  return from == to ? 0 : table(to).hops[static_cast<std::size_t>(from)];
}

void SwitchRoutes::append(int from, int to, int port, std::vector<LinkId>& links) const {
  if (from == to) return;
  const Table& t = table(to);
  for (auto at = static_cast<std::size_t>(from); at != static_cast<std::size_t>(to);) {
    const std::size_t choices = t.first[at + 1] - t.first[at];
    check(choices > 0, "no way between these switches");
    const Edge& edge = t.next[t.first[at] + static_cast<std::size_t>(port) % choices];
    links.push_back(edge.link);
    at = edge.to;
  }
}

}  // namespace mllmsim
