#include "strategies/data/packing/best_fit.hpp"

#include <algorithm>
#include <numeric>

#include "strategies/data/packing/level_queue.hpp"

namespace mllmsim::data {
namespace {

// Packs as full as this in tokens are as many as one can hope to fill; more would leave no play for
// the last samples.
constexpr double kFullestTokens = 0.997;

using PackIndex = std::uint32_t;
constexpr PackIndex kNoPack = 0xffffffff;

// A stable pass of radix sort, by 16 bits of a key. The items `from` may be anything item_of()
// makes an Item of.
template <class From, class ItemOf, class Digit>
void sort_pass(const From& from, std::vector<Item>& to, ItemOf item_of, Digit digit) {
  std::vector<std::uint32_t> start(std::size_t{1} << 16);
  for (const auto& x : from) ++start[digit(item_of(x).sample)];
  std::exclusive_scan(start.begin(), start.end(), start.begin(), std::uint32_t{0});
  for (const auto& x : from) {
    const Item item = item_of(x);
    to[start[digit(item.sample)]++] = item;
  }
}

// Those samples that fit: tiles, then tokens, both descending. For common limits, such as 9 and
// 4096, this is one pass.
std::vector<Item> sorted(std::span<const Sample> samples, const std::vector<SampleIndex>& fitting,
                         const PackLimits& limits) {
  const auto scale = static_cast<std::uint64_t>(limits.tokens) + 1;
  const std::uint64_t most = scale * (static_cast<std::uint64_t>(limits.tiles) + 1) - 1;
  const auto digit = [&](int shift) {
    return [=](const Sample& s) {
      const auto key =
          static_cast<std::uint64_t>(s.tiles) * scale + static_cast<std::uint64_t>(s.tokens);
      return ((most - key) >> shift) & 0xffff;
    };
  };
  std::vector<Item> items(fitting.size()), spare;
  sort_pass(
      fitting, items,
      [&](SampleIndex i) {
        return Item{samples[i], i};
      },
      digit(0));
  for (int shift = 16; shift < 64 && (most >> shift) > 0; shift += 16) {
    spare.resize(items.size());
    sort_pass(
        items, spare, [](const Item& item) { return item; }, digit(shift));
    items.swap(spare);
  }
  return items;
}

class Packer {
 public:
  Packer(std::span<const Sample> samples, const PackLimits& limits) : limits_(limits) {
    std::vector<SampleIndex> fitting;
    fitting.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      (fits(samples[i], limits) ? fitting : packing_.oversized)
          .push_back(static_cast<SampleIndex>(i));
    items_ = sorted(samples, fitting, limits);
    pack_of_ = std::move(fitting);  // the same size, and no longer needed
    std::fill(pack_of_.begin(), pack_of_.end(), kNoPack);
    plan(fewest_packs(samples, limits) - packing_.oversized.size());
  }

  Packing pack() {
    LevelQueue queue(loads_.size());
    deal_long_samples();
    deal(queue, fewest_tiles_ + 1, limits_.tiles, Refused::pack,
         [&](const Sample& pack) { return room_in_tiles(pack); });
    deal(queue, fewest_tiles_, fewest_tiles_, Refused::sample,
         [&](const Sample& pack) { return wanted_per_tile(pack); });
    deal(queue, 0, limits_.tiles, Refused::sample,
         [&](const Sample& pack) { return room_in_tokens(pack); });
    pack_what_is_left();
    return collected();
  }

 private:
  void plan(std::size_t bound) {
    Load sum, several;
    for (const Item& item : items_) {
      sum += item.sample;
      if (item.sample.tiles > 0) fewest_tiles_ = item.sample.tiles;  // the last one's: they descend
    }
    for (const Item& item : items_)
      if (item.sample.tiles > fewest_tiles_) several += item.sample;
    tokens_a_tile_ =
        std::max<std::int64_t>(1, several.tokens / std::max<std::int64_t>(1, several.tiles));
    if (items_.empty()) return;
    const double by_tokens =
        static_cast<double>(sum.tokens) / (kFullestTokens * static_cast<double>(limits_.tokens));
    loads_.resize(std::max(bound, static_cast<std::size_t>(by_tokens) + 1));
    const auto packs = static_cast<std::int64_t>(loads_.size());
    mean_tokens_ = (sum.tokens + packs - 1) / packs;
    mean_tiles_ = std::min(limits_.tiles, (sum.tiles + packs - 1) / packs);
  }

  std::uint32_t room_in_tiles(const Sample& pack) const {
    const std::int64_t by_tokens = (limits_.tokens - pack.tokens) / tokens_a_tile_;
    return level(std::min(limits_.tiles - pack.tiles, by_tokens), limits_.tiles);
  }
  std::uint32_t room_in_tokens(const Sample& pack) const {
    return level(limits_.tokens - pack.tokens, limits_.tokens);
  }
  std::uint32_t wanted_per_tile(const Sample& pack) const {
    const std::int64_t left = std::max<std::int64_t>(fewest_tiles_, mean_tiles_ - pack.tiles);
    return level((mean_tokens_ - pack.tokens) * fewest_tiles_ / left, limits_.tokens);
  }
  static std::uint32_t level(std::int64_t value, std::int64_t most) {
    constexpr std::int64_t kTop = LevelQueue::kLevels - 1;
    value = std::clamp<std::int64_t>(value, 0, most);
    return static_cast<std::uint32_t>(most <= kTop ? value : value * kTop / most);
  }

  bool add(std::size_t item, PackIndex p) {
    const Sample& s = items_[item].sample;
    Sample& load = loads_[p];
    if (load.tiles + s.tiles > limits_.tiles || load.tokens + s.tokens > limits_.tokens)
      return false;
    load = {load.tiles + s.tiles, load.tokens + s.tokens};
    pack_of_[item] = p;
    return true;
  }

  void deal_long_samples() {
    PackIndex p = 0;
    for (std::size_t i = 0; i < items_.size() && p < loads_.size(); ++i)
      if (2 * std::int64_t{items_[i].sample.tokens} > limits_.tokens) add(i, p++);
  }

  // What is set aside when a pack has too little room for the sample it is offered.
  enum class Refused : std::uint8_t { pack, sample };

  // Every sample of `least` to `most` tiles, in order, to the pack on the highest level.
  template <class Level>
  void deal(LevelQueue& queue, std::int64_t least, std::int64_t most, Refused refused,
            Level level_of) {
    const auto enqueue = [&](PackIndex p) {
      if (loads_[p].tiles + least <= limits_.tiles) queue.push(p, level_of(loads_[p]));
    };
    queue.clear();
    for (auto p = static_cast<PackIndex>(loads_.size()); p-- > 0;) enqueue(p);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const std::int64_t tiles = items_[i].sample.tiles;
      if (pack_of_[i] != kNoPack || tiles < least || tiles > most) continue;
      while (!queue.empty()) {
        const PackIndex p = queue.pop_highest();
        const bool added = add(i, p);
        if (added || refused == Refused::sample) enqueue(p);
        if (added || refused == Refused::sample) break;
      }
    }
  }

  void pack_what_is_left() {
    const std::size_t first_extra = loads_.size();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (pack_of_[i] != kNoPack) continue;
      if (loads_.size() > first_extra && add(i, static_cast<PackIndex>(loads_.size() - 1)))
        continue;
      loads_.emplace_back();
      add(i, static_cast<PackIndex>(loads_.size() - 1));
    }
  }

  // A pack may have stayed empty when there is less to fill than the bound on tokens allows for.
  Packing collected() {
    std::vector<std::uint32_t>& offsets = packing_.packs.offsets;
    offsets.assign(loads_.size() + 1, 0);
    for (const PackIndex p : pack_of_) ++offsets[p + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<std::uint32_t> next(offsets.begin(), offsets.end() - 1);
    std::vector<SampleIndex>& indices = packing_.packs.indices;
    indices.reserve(items_.size() + packing_.oversized.size());
    indices.resize(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) indices[next[pack_of_[i]]++] = items_[i].index;
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    for (const SampleIndex i : packing_.oversized) {
      indices.push_back(i);
      packing_.packs.end_group();
    }
    return std::move(packing_);
  }

  PackLimits limits_;
  Packing packing_;
  std::vector<Item> items_;         // in the order they are dealt
  std::vector<PackIndex> pack_of_;  // of each item
  std::vector<Sample> loads_;       // of each pack; within the limits, so 32 bits are enough
  std::int64_t fewest_tiles_ = 1;   // of samples that have any
  std::int64_t tokens_a_tile_ = 1;  // of samples with more tiles than that
  std::int64_t mean_tokens_ = 0, mean_tiles_ = 0;  // of a pack
};

}  // namespace

Packing pack_best_fit(std::span<const Sample> samples, const PackLimits& limits) {
  return Packer(samples, limits).pack();
}

}  // namespace mllmsim::data
