// Leaves out what nobody could see: spans thinner than half a pixel are drawn together, each half
// pixel as what fills most of it.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "sim/base/units.hpp"

namespace mllmsim::charts {

struct Stretch {
  Time start{}, end{};
  std::size_t look = 0;
  int micro_batch = -1;
  bool merged = false;  // of several spans
  bool operator==(const Stretch&) const = default;
};

// `spans` by start. Merged ones come first, as their edges are rounded and others go on top.
std::vector<Stretch> thinned(std::span<const Stretch> spans, Time half_pixel);

}  // namespace mllmsim::charts
