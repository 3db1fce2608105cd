// What LayerCosts remembers: costs by layer and micro-batch, and the parts of blocks by tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::costs {

// What a cost depends on: blocks of one kind in a module are alike. Of the batch, only what the
// layer sees. Asked with a reference to a batch, remembered with a copy.
template <class Batch>
struct Key {
  LayerKind kind;
  std::uint16_t module;
  std::size_t block_kind;
  Recompute recompute;
  Batch batch;

  auto tied() const { return std::tie(kind, module, block_kind, recompute, batch); }
};
using AskedKey = Key<const TokenBatch&>;
using StoredKey = Key<TokenBatch>;

struct KeyOrder {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const { return a.tied() < b.tied(); }
};

// A layer and all it sees of a micro-batch whose sequences are alike.
struct TotalKey {
  LayerKind kind;
  std::uint16_t module;
  std::size_t block_kind;
  Recompute recompute;
  std::int64_t sequences, tokens, image_tokens, cross_keys;
  std::int64_t local_tokens;  // of a cp rank: depends on how long each sequence is

  bool operator==(const TotalKey&) const = default;
};

struct TotalKeyHash {
  std::size_t operator()(const TotalKey& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.kind) | std::uint64_t{key.module} << 8 |
                      static_cast<std::uint64_t>(key.recompute) << 24 |
                      static_cast<std::uint64_t>(key.block_kind) << 32;
    for (const std::int64_t n :
         {key.sequences, key.tokens, key.image_tokens, key.cross_keys, key.local_tokens})
      h = (h ^ static_cast<std::uint64_t>(n)) * 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 32);
  }
};

// Totals by key. A pass over a data set asks for more than a core's caches hold, so what will be
// asked for can be fetched ahead: first the place that knows where it is, then the totals.
class KnownTotals {
 public:
  static std::uint64_t hash_of(const TotalKey& key) { return TotalKeyHash()(key); }
  void expect(std::uint64_t hash) const {
    if (!places_.empty()) __builtin_prefetch(&places_[hash & (places_.size() - 1)]);
  }
  void fetch(std::uint64_t hash) const {
    if (places_.empty()) return;
    const Place& place = places_[hash & (places_.size() - 1)];
    if (place.tag != tag_of(hash)) return;
    const char* const first = reinterpret_cast<const char*>(&entries_[place.entry]);
    for (std::size_t at = 0; at < sizeof(Entry); at += 64) __builtin_prefetch(first + at);
  }

  // compute(): those of a key that is new.
  template <class Compute>
  const LayerTotals& of(const TotalKey& key, const Compute& compute) {
    const std::uint64_t hash = hash_of(key);
    if (const LayerTotals* known = find(key, hash)) return *known;
    if (entries_.size() == kMost) entries_.clear(), places_.assign(places_.size(), {});
    if (places_.size() < 2 * (entries_.size() + 1)) grow();
    entries_.push_back({key, compute()});
    settle(hash, entries_.size() - 1);
    return entries_.back().totals;
  }

 private:
  static constexpr std::size_t kMost = 1 << 16;  // then they are forgotten
  struct Entry {
    TotalKey key;
    LayerTotals totals;
  };
  struct Place {
    std::uint32_t tag = 0;  // 0: free
    std::uint32_t entry = 0;
  };
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32) | 1;
  }
  const LayerTotals* find(const TotalKey& key, std::uint64_t hash) const {
    if (places_.empty()) return nullptr;
    const std::size_t mask = places_.size() - 1;
    for (std::size_t at = hash & mask; places_[at].tag != 0; at = (at + 1) & mask)
      if (places_[at].tag == tag_of(hash))
        if (const Entry& entry = entries_[places_[at].entry]; entry.key == key)
          return &entry.totals;
    return nullptr;
  }
  void settle(std::uint64_t hash, std::size_t entry) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash & mask;
    while (places_[at].tag != 0) at = (at + 1) & mask;
    places_[at] = {tag_of(hash), static_cast<std::uint32_t>(entry)};
  }
  void grow() {
    places_.assign(std::max<std::size_t>(64, 2 * places_.size()), {});
    for (std::size_t i = 0; i < entries_.size(); ++i) settle(hash_of(entries_[i].key), i);
  }

  std::vector<Place> places_;  // a power of two of them
  std::vector<Entry> entries_;
};

// The parts of a block that depend on the number of tokens alone.
struct LayerCosts::BlockTotals {
  KernelTotals forward, backward, rerun;
  KernelTotals again;                          // by full recompute
  std::array<Bytes, 3> saved{}, recomputed{};  // by recompute; with flash attention
  Bytes gradients{};                           // that the backward works with
};

// A new pack with a known number of tokens costs only its attention and a copy of the other parts.
// Those are kept for good: token counts are bounded by the longest micro-batch.
struct LayerCosts::Memo {
  using Costs = std::map<StoredKey, LayerCost, KeyOrder>;
  Costs costs;
  Costs::iterator latest = costs.end();  // blocks of a stage are asked for one after another
  std::deque<Costs::iterator> oldest_first;
  // Module, kind, tokens, keys of cross-attention, samples whose positions are applied one by one.
  using BlockKey = std::tuple<std::uint16_t, std::size_t, std::int64_t, std::int64_t, std::int64_t>;
  std::map<BlockKey, BlockParts> block_parts;
  std::map<BlockKey, BlockTotals> block_totals;
  KnownTotals totals;

  const LayerCost* find(const AskedKey& key) {
    if (latest == costs.end() || latest->first.tied() != key.tied()) latest = costs.find(key);
    return latest == costs.end() ? nullptr : &latest->second;
  }

  const LayerCost& remember(const AskedKey& key, LayerCost cost) {
    latest = costs
                 .emplace(StoredKey{key.kind, key.module, key.block_kind, key.recompute, key.batch},
                          std::move(cost))
                 .first;
    oldest_first.push_back(latest);
    if (oldest_first.size() > kRemembered) {
      costs.erase(oldest_first.front());
      oldest_first.pop_front();
    }
    return latest->second;
  }

  const BlockParts& parts(const Block& block, const BlockKey& key) {
    const auto found = block_parts.find(key);
    if (found != block_parts.end()) return found->second;
    return block_parts.emplace(key, costs::block_parts(block, std::get<2>(key), std::get<3>(key)))
        .first->second;
  }
};

}  // namespace mllmsim::costs
