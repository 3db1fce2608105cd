#include "sim/kernel/route_links.hpp"

#include <algorithm>

namespace mllmsim {
namespace {

// What a route puts on a link.
struct Loaded {
  LinkId link;
  std::uint32_t route = 0;
  Bytes bytes{};
};

// The same link, of all routes that use it, in their order.
using LoadedLink = std::span<const Loaded>;

bool same_routes(LoadedLink a, LoadedLink b) {
  return std::ranges::equal(a, b, {}, &Loaded::route, &Loaded::route);
}

bool routes_before(LoadedLink a, LoadedLink b) {
  return std::ranges::lexicographical_compare(a, b, {}, &Loaded::route, &Loaded::route);
}

class Tightest {
 public:
  Tightest(const std::vector<BytesPerSecond>& bandwidths) : bandwidths_(bandwidths) {}

  // Of links with the same routes.
  void offer(LoadedLink link) {
    if (std::ranges::any_of(kept_, [&](LoadedLink other) { return covers(other, link); })) return;
    std::erase_if(kept_, [&](LoadedLink other) { return covers(link, other); });
    kept_.push_back(link);
  }
  const std::vector<LoadedLink>& kept() const { return kept_; }
  void clear() { kept_.clear(); }

 private:
  // a needs as much as b for every route.
  bool covers(LoadedLink a, LoadedLink b) const {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (time(a[i]) < time(b[i])) return false;
    return true;
  }
  Seconds time(const Loaded& use) const { return use.bytes / bandwidths_[use.link.value]; }

  const std::vector<BytesPerSecond>& bandwidths_;
  std::vector<LoadedLink> kept_;
};

}  // namespace

RouteLinks::RouteLinks(const std::vector<BytesPerSecond>& bandwidths, const Program& program)
    : first_(program.routes() + 1, 0) {
  std::vector<Loaded> all;
  for (std::uint32_t r = 0; r < program.routes(); ++r)
    for (const LinkUse& use : program.uses({r})) all.push_back({use.link, r, use.bytes});
  std::ranges::stable_sort(all, {}, &Loaded::link);
  std::vector<LoadedLink> links;
  for (std::size_t i = 0; i < all.size();) {
    const std::size_t begin = i;
    while (i < all.size() && all[i].link == all[begin].link) ++i;
    links.push_back(LoadedLink(all).subspan(begin, i - begin));
  }
  std::ranges::stable_sort(links, routes_before);

  std::vector<Loaded> kept;  // links numbered anew
  Tightest tightest(bandwidths);
  std::vector<BytesPerSecond> kept_bandwidths;
  for (std::size_t i = 0; i < links.size();) {
    const std::size_t begin = i;
    tightest.clear();
    for (; i < links.size() && same_routes(links[begin], links[i]); ++i) tightest.offer(links[i]);
    for (const LoadedLink link : tightest.kept()) {
      for (const Loaded& use : link) kept.push_back({{links_}, use.route, use.bytes});
      kept_bandwidths.push_back(bandwidths[link.front().link.value]);
      ++links_;
    }
  }
  std::ranges::stable_sort(kept, {}, &Loaded::route);
  for (const Loaded& use : kept) {
    ++first_[use.route + 1];
    uses_.push_back({use.link.value, use.bytes, kept_bandwidths[use.link.value]});
  }
  for (std::size_t r = 1; r < first_.size(); ++r) first_[r] += first_[r - 1];
}

}  // namespace mllmsim
