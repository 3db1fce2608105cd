#include "strategies/optimus/gaps.hpp"

#include <algorithm>

namespace mllmsim::optimus {

GapCursor::GapCursor(const std::vector<Gap>& gaps, Time from) : gaps_(gaps), free_(from) {
  gap_ = static_cast<std::size_t>(
      std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& g) { return g.to <= from; }) -
      gaps.begin());
}

Gap GapCursor::place(Time earliest, Time duration, Time slowed) {
  for (;; ++gap_) {
    const Gap& g = gaps_[gap_];
    const Time start = std::max({g.from, free_, earliest});
    const Time end = start + (g.tp_bubble ? slowed : duration);
    if (end > g.to) continue;
    free_ = end;
    return {start, end, g.tp_bubble};
  }
}

void take(std::vector<Gap>& gaps, const std::vector<Gap>& taken, std::vector<Gap>& spare) {
  if (taken.empty()) return;
  // Only the gaps between the first and the last kernel change.
  const auto first = std::partition_point(gaps.begin(), gaps.end(),
                                          [&](const Gap& g) { return g.to <= taken.front().from; });
  auto end = first;
  spare.clear();
  auto next = taken.begin();
  for (; next != taken.end(); ++end) {
    Gap g = *end;
    for (; next != taken.end() && next->from < g.to; ++next) {
      if (next->from > g.from) spare.push_back({g.from, next->from, g.tp_bubble});
      g.from = next->to;
    }
    if (g.to > g.from) spare.push_back(g);
  }
  const auto before = static_cast<std::size_t>(end - first);
  const std::size_t kept = std::min(before, spare.size());
  const auto at = std::copy_n(spare.begin(), kept, first);
  if (kept < before)
    gaps.erase(at, end);
  else
    gaps.insert(at, spare.begin() + static_cast<std::ptrdiff_t>(kept), spare.end());
}

}  // namespace mllmsim::optimus
