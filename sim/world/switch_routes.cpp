#include "sim/world/switch_routes.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>

namespace mllmsim {

struct SwitchRoutes::Graph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge> {
  using adjacency_list::adjacency_list;
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

void SwitchRoutes::search(int to) const {
  const std::scoped_lock lock(searching_);
  Table& t = tables_[static_cast<std::size_t>(to)];
  if (t.searched) return;
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
  t.searched.store(true, std::memory_order_release);
}

}  // namespace mllmsim
