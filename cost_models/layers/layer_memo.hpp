// What LayerCosts remembers: costs by layer and micro-batch, and the parts of blocks by tokens.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

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

inline constexpr std::size_t kMostTotals = 1 << 16;  // then they are forgotten

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
  // Module, kind, tokens, keys of cross-attention.
  using BlockKey = std::tuple<std::uint16_t, std::size_t, std::int64_t, std::int64_t>;
  std::map<BlockKey, BlockParts> block_parts;
  std::map<BlockKey, BlockTotals> block_totals;
  std::unordered_map<TotalKey, LayerTotals, TotalKeyHash> totals;

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
