// Layers in a row cut into parts of equal weight.
//
// The heaviest part weighs as little as can be,
//   F(l, m) = min over j of max(F(j, m - 1), w(j + 1) + ... + w(l)),
// and among those cuts the most even one is taken (least sum of squares). Both are exact; for n
// layers the first takes O(parts * n * log n), the second as little where weights are alike, and
// O(parts * n^2) where one layer outweighs all others.
#pragma once

#include <cstddef>
#include <vector>

namespace mllmsim::plans {

// Sizes of `parts` non-empty parts. No weight is negative.
std::vector<std::size_t> balanced_cut(const std::vector<double>& weights, std::size_t parts);

}  // namespace mllmsim::plans
