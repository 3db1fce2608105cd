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

// Sizes of `parts` non-empty parts. No weight is negative. With `slack`, the most even of all cuts
// whose heaviest part is at most that much heavier than it must be.
std::vector<std::size_t> balanced_cut(const std::vector<double>& weights, std::size_t parts,
                                      double slack = 0);

// For interleaved schedules: part k is chunk k / ranks of rank k % ranks, and most of the time all
// ranks work on the same chunk, so that a round of micro-batches takes
//   sum over chunks of the heaviest of their `ranks` parts.
// The cut with the least such sum, by dynamic programming over where chunks begin; each chunk is
// cut as above. A small change of weights changes the sum by as little. Exactly up to 256 layers,
// of more to within 1/256 of them: a chunk then begins at every so many layers only.
std::vector<std::size_t> cut_by_chunks(const std::vector<double>& weights, std::size_t ranks,
                                       std::size_t chunks);

}  // namespace mllmsim::plans
