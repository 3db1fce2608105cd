#include "results/charts/thin.hpp"

#include <algorithm>

namespace mllmsim::charts {

std::vector<Stretch> thinned(std::span<const Stretch> spans, Time half_pixel) {
  const std::int64_t cell = std::max<std::int64_t>(1, half_pixel.value);
  std::vector<Stretch> merged, wide;
  std::map<std::size_t, std::int64_t> time_of;  // looks in the current cell
  std::int64_t current = -1;
  const auto close = [&] {
    if (time_of.empty()) return;
    const auto most = std::max_element(time_of.begin(), time_of.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const Time start{current * cell}, end{(current + 1) * cell};
    if (!merged.empty() && merged.back().end == start && merged.back().look == most->first)
      merged.back().end = end;
    else
      merged.push_back({start, end, most->first, -1, true});
    time_of.clear();
  };
  for (const Stretch& s : spans) {
    if (s.end - s.start >= Time{cell}) {
      wide.push_back(s);
      continue;
    }
    if (s.end == s.start) continue;
    if (const std::int64_t at = s.start.value / cell; at != current) close(), current = at;
    time_of[s.look] += (s.end - s.start).value;
  }
  close();
  merged.insert(merged.end(), wide.begin(), wide.end());
  return merged;
}

}  // namespace mllmsim::charts
