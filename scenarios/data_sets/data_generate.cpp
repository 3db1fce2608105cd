#include <algorithm>
#include <cmath>
#include <span>

#include "scenarios/data_sets/data_mixture.hpp"
#include "strategies/data/random.hpp"

namespace mllmsim::scenarios {
namespace {

// What is left of a grid with its thumbnail when at most `max_tiles` are allowed. 2x2 falls back to
// 1x1, which has the same aspect ratio; 1xk to the longest 1xk' allowed.
std::int32_t limited(std::int32_t tiles, std::int64_t max_tiles) {
  const std::int32_t grid = tiles == 1 ? 1 : tiles - 1;
  if (grid <= max_tiles) return tiles;
  if (grid == 4 || max_tiles == 1) return 1;
  return static_cast<std::int32_t>(max_tiles) + 1;
}

// Draws from a histogram.
class TileCounts {
 public:
  TileCounts(const MixtureSet& set, std::int64_t max_tiles) {
    double sum = 0;
    for (const auto& [tiles, share] : set.tiles)
      steps_.push_back({sum += share, limited(tiles, max_tiles)});
    for (auto& [upto, tiles] : steps_) upto /= sum;
  }
  std::int32_t draw(data::Random& random) const {
    const double u = random.uniform();
    for (const auto& [upto, tiles] : steps_)
      if (u < upto) return tiles;
    return steps_.back().second;
  }

 private:
  std::vector<std::pair<double, std::int32_t>> steps_;
};

std::int64_t draw(const TextLength& text, data::Random& random) {
  const double length = text.shift + text.median * std::exp(text.sigma * random.normal());
  return std::llround(std::clamp(length, 1.0, static_cast<double>(text.max)));
}

}  // namespace

data::DataSet generate(const Mixture& mixture, std::uint64_t seed) {
  data::DataSet data;
  data.tokens_per_tile = mixture.tokens_per_tile;
  std::size_t size = 0;
  for (const MixtureSet& set : mixture.sets) size += static_cast<std::size_t>(set.samples);
  data.samples.reserve(size);
  data::Random random(seed);
  for (const MixtureSet& set : mixture.sets) {
    if (data.sets.empty() || data.sets.back().name != set.name)
      data.sets.push_back({set.name, data.samples.size(), 0});
    const bool text_only = set.tiles.empty();
    const TileCounts tile_counts(set, mixture.max_tiles);
    for (std::int64_t i = 0; i < set.samples; ++i) {
      const std::int32_t tiles = text_only ? 1 : tile_counts.draw(random);
      const std::int64_t image = text_only ? 0 : tiles * mixture.tokens_per_tile;
      const std::int64_t tokens = std::min(mixture.max_tokens, image + draw(set.text, random));
      data.samples.push_back({tiles, static_cast<std::int32_t>(tokens)});
      data.text_only.push_back(text_only ? 1 : 0);
    }
    data.sets.back().end = data.samples.size();
  }
  // Parts of one set come in any order.
  for (const data::SampleSet& set : data.sets) {
    data::Random order(seed + set.begin), same(seed + set.begin);
    data::shuffle(std::span(data.samples).subspan(set.begin, set.end - set.begin), order);
    data::shuffle(std::span(data.text_only).subspan(set.begin, set.end - set.begin), same);
  }
  return data;
}

}  // namespace mllmsim::scenarios
