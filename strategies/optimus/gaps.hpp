// Free time of a stream, as a list of gaps in time order, and placing kernels into it.
//
// A kernel goes whole into one gap. In a gap that is a tp bubble it is slowed by the LLM's
// collective beside it. Placing only finds a place; take() makes it occupied.
#pragma once

#include <vector>

#include "sim/base/units.hpp"

namespace mllmsim::optimus {

inline constexpr Time kAlways{INT64_MAX / 4};

struct Gap {
  Time from, to;
  bool tp_bubble = false;  // between kernels of one pass: the LLM waits for a collective

  bool operator==(const Gap&) const = default;
};

// How far the kernels of one pass have been placed; only ever moves on. The last gap has no end.
class GapCursor {
 public:
  GapCursor(const std::vector<Gap>& gaps, Time from);

  // The first place from `earliest` on, behind what was placed before. `slowed`: the kernel's time
  // in a tp bubble.
  Gap place(Time earliest, Time duration, Time slowed);

 private:
  const std::vector<Gap>& gaps_;
  std::size_t gap_ = 0;
  Time free_;
};

// What is taken is no gap any more. `taken`: places in time order; `spare` is room to work in.
void take(std::vector<Gap>& gaps, const std::vector<Gap>& taken, std::vector<Gap>& spare);

}  // namespace mllmsim::optimus
