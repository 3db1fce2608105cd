#include "strategies/data/packing/isf.hpp"

#include <algorithm>

#include "strategies/data/random.hpp"

namespace mllmsim::data {
namespace {

constexpr std::size_t kFetched = 32;  // items on their way from memory

class Pool {
 public:
  Pool(std::span<const Sample> samples, const PackLimits& limits, Packing& packing)
      : limits_(limits), packing_(packing) {
    items_.reserve(samples.size());
    packing_.packs.indices.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto index = static_cast<SampleIndex>(i);
      if (fits(samples[i], limits))
        items_.push_back({samples[i], index});
      else
        packing_.oversized.push_back(index);
    }
  }

  bool empty() const { return items_.empty(); }

  // One round. Shuffling and filling are one pass: an item is looked at when it has been drawn.
  // Of the last, all packs are kept. What is dissolved moves to the front of the array, never past
  // the pack being filled.
  void round(const PackLimits& keep, bool last, Random& random) {
    const std::size_t size = items_.size();
    std::size_t pooled = 0, first = 0;
    Load load;
    const auto close = [&](std::size_t end) {
      if (last || load.tiles == keep.tiles || load.tokens >= keep.tokens) {
        for (std::size_t i = first; i < end; ++i) packing_.packs.indices.push_back(items_[i].index);
        packing_.packs.end_group();
      } else {
        for (std::size_t i = first; i < end; ++i) items_[pooled++] = items_[i];
      }
      first = end;
      load = {};
    };
    // Which item is drawn depends on the generator alone, so it is fetched before its turn.
    Random drawn = random;
    const auto fetch = [&](std::size_t i) {
      if (i < size)
        __builtin_prefetch(&items_[i + drawn.below(static_cast<std::uint32_t>(size - i))], 1);
    };
    for (std::size_t i = 0; i < kFetched; ++i) fetch(i);
    for (std::size_t i = 0; i < size; ++i) {
      fetch(i + kFetched);
      std::swap(items_[i], items_[i + random.below(static_cast<std::uint32_t>(size - i))]);
      const Sample& next = items_[i].sample;
      if (load.tiles + next.tiles > limits_.tiles || load.tokens + next.tokens > limits_.tokens)
        close(i);
      load += next;
    }
    if (size > 0) close(size);
    items_.resize(pooled);
  }

 private:
  PackLimits limits_;
  Packing& packing_;
  std::vector<Item> items_;
};

}  // namespace

PackLimits default_keep(const PackLimits& limits) {
  return {limits.tiles, std::max<std::int64_t>(1, limits.tokens - 128)};
}

Packing pack_isf(std::span<const Sample> samples, const IsfOptions& options) {
  const PackLimits& limits = options.limits;
  const PackLimits keep = options.keep.value_or(default_keep(limits));
  Packing packing;
  Random random(options.seed);
  Pool pool(samples, limits, packing);
  for (int r = 0; r < options.rounds && !pool.empty(); ++r) pool.round(keep, false, random);
  pool.round(keep, true, random);
  for (const SampleIndex i : packing.oversized) {
    packing.packs.indices.push_back(i);
    packing.packs.end_group();
  }
  return packing;
}

}  // namespace mllmsim::data
