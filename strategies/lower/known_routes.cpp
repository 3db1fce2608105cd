#include "strategies/lower/known_routes.hpp"

#include <utility>

namespace mllmsim::lower {
namespace {

// What `find` finds for the key, the first time.
template <class Map, class Find>
const typename Map::mapped_type& remembered(Map& map, typename Map::key_type key,
                                            const Find& find) {
  const auto known = map.find(key);
  if (known != map.end()) return known->second;
  auto found = find();
  return map.emplace(std::move(key), std::move(found)).first->second;
}

}  // namespace

void KnownRoutes::see(Network::SeenNodes seen) {
  if (seen == seen_) return;
  seen_ = std::move(seen);
  messages_.clear();
  rings_.clear();
}

const std::vector<LinkUse>& KnownRoutes::messages(const std::vector<std::pair<int, int>>& from_to,
                                                  Bytes bytes) {
  return remembered(messages_, {from_to, bytes},
                    [&] { return network_.messages(from_to, bytes, seen_); });
}

const std::vector<LinkUse>& KnownRoutes::rings(const std::vector<std::vector<int>>& groups,
                                               Bytes bytes) {
  return remembered(rings_, {groups, bytes}, [&] { return network_.rings(groups, bytes, seen_); });
}

const RouteLinks& KnownRoutes::links(const Program& program) {
  if (!links_ || routes_ != program.all_routes()) {
    links_.emplace(network_.link_bandwidths(), program);
    routes_ = program.all_routes();
  }
  return *links_;
}

}  // namespace mllmsim::lower
