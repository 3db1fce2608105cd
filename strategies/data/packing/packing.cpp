#include "strategies/data/packing/packing.hpp"

#include <algorithm>
#include <cmath>

namespace mllmsim::data {
namespace {

constexpr std::int64_t kUsualPackTokens = 4096;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Martello and Toth's L2 for one resource (Knapsack Problems, 1990, section 8.3). For any k:
// samples above Q - k share with none of size k or more, those above Q / 2 not with each other, and
// the sizes from k to Q / 2 that do not fit beside the latter need packs of their own. `count[s]`
// samples have size s; k = 0 alone is ceil(sum / Q).
std::int64_t one_resource(const std::vector<std::int64_t>& count) {
  const auto q = static_cast<std::int64_t>(count.size()) - 1;
  const auto at = [&](std::int64_t size) { return count[static_cast<std::size_t>(size)]; };
  std::int64_t alone = 0, large = 0, large_sum = 0, small_sum = 0, best = 0;
  for (std::int64_t s = 0; s <= q; ++s) {
    (2 * s > q ? large_sum : small_sum) += s * at(s);
    if (2 * s > q) large += at(s);
  }
  for (std::int64_t k = 0; 2 * k <= q; ++k) {
    best = std::max(
        best, alone + large +
                  std::max<std::int64_t>(0, ceil_div(small_sum - (large * q - large_sum), q)));
    small_sum -= k * at(k);
    if (2 * (q - k) <= q) break;
    alone += at(q - k);
    large -= at(q - k);
    large_sum -= (q - k) * at(q - k);
  }
  return best;
}

// A pack has at most one sample of more than Q_t / 2 tokens. The room it leaves holds at most
// room / d tiles, where d is the least number of tokens per tile of any sample; tiles beyond that
// stay empty, and those of different packs add up.
std::int64_t by_tiles_beside_long_samples(std::span<const Sample> samples,
                                          const PackLimits& limits) {
  // The sample with the least tokens per tile, compared as fractions.
  Sample least{1, static_cast<std::int32_t>(limits.tokens)};
  for (const Sample& s : samples)
    if (s.tiles > 0 && std::int64_t{s.tokens} * least.tiles < std::int64_t{least.tokens} * s.tiles)
      least = s;
  std::int64_t tiles = 0;
  for (const Sample& s : samples) {
    if (!fits(s, limits)) continue;
    tiles += s.tiles;
    if (2 * std::int64_t{s.tokens} <= limits.tokens || least.tokens == 0) continue;
    const std::int64_t beside = (limits.tokens - s.tokens) * least.tiles / least.tokens;
    tiles += std::max<std::int64_t>(0, limits.tiles - s.tiles - beside);
  }
  return ceil_div(tiles, limits.tiles);
}

}  // namespace

PackLimits choose_limits(std::span<const Sample> samples) {
  PackLimits limits{1, kUsualPackTokens};
  double tokens_per_tile = 0;
  std::int64_t with_tiles = 0;
  for (const Sample& s : samples) {
    limits.tiles = std::max<std::int64_t>(limits.tiles, s.tiles);
    limits.tokens = std::max<std::int64_t>(limits.tokens, s.tokens);
    if (s.tiles == 0) continue;
    tokens_per_tile += static_cast<double>(s.tokens) / s.tiles;
    ++with_tiles;
  }
  if (tokens_per_tile > 0)
    limits.tiles = std::max<std::int64_t>(
        limits.tiles,
        std::llround(static_cast<double>(limits.tokens * with_tiles) / tokens_per_tile));
  return limits;
}

std::size_t fewest_packs(std::span<const Sample> samples, const PackLimits& limits) {
  std::vector<std::int64_t> by_tiles(static_cast<std::size_t>(limits.tiles) + 1);
  std::vector<std::int64_t> by_tokens(static_cast<std::size_t>(limits.tokens) + 1);
  std::int64_t oversized = 0;
  for (const Sample& s : samples) {
    if (!fits(s, limits)) {
      ++oversized;
      continue;
    }
    ++by_tiles[static_cast<std::size_t>(s.tiles)];
    ++by_tokens[static_cast<std::size_t>(s.tokens)];
  }
  const std::int64_t packed = std::max({one_resource(by_tiles), one_resource(by_tokens),
                                        by_tiles_beside_long_samples(samples, limits)});
  return static_cast<std::size_t>(packed + oversized);
}

}  // namespace mllmsim::data
