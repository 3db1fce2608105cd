// The links of a program's routes, numbered from 0, without those that can never be the tightest.
//
// Links that the same routes use carry the same flows. If one of them needs at least as large a
// share of its bandwidth for every route as another, it is full whenever the other is, and the
// other never decides a rate: it is left out. Of the NICs of a tensor-parallel group, all loaded
// alike, one remains; of the links in a row on a way, the slowest.
#pragma once

#include <span>
#include <vector>

#include "sim/kernel/program.hpp"

namespace mllmsim {

class RouteLinks {
 public:
  RouteLinks(const std::vector<BytesPerSecond>& bandwidths, const Program& program);

  struct Use {
    std::uint32_t link = 0;
    Bytes bytes{};
    BytesPerSecond bandwidth{};
  };
  std::span<const Use> of(RouteId route) const {
    const std::uint32_t begin = first_[route.value];
    return std::span(uses_).subspan(begin, first_[route.value + 1] - begin);
  }
  std::uint32_t links() const { return links_; }

 private:
  std::uint32_t links_ = 0;
  std::vector<std::uint32_t> first_;  // by route, and the end
  std::vector<Use> uses_;
};

}  // namespace mllmsim
