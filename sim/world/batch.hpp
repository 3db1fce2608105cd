// What passes through the layers at once.
//
// A TokenBatch is a set of sequences, each attending only within itself: GEMMs see tokens(),
// attention sees every length. Equal lengths are one group, so a uniform batch is one entry however
// large. Padding, where a trainer pads, is already part of the lengths.
//
// Where an LLM sees images by cross-attention, a sequence has beside it the image tokens that are
// keys to it; they are no part of it.
#pragma once

#include <cstdint>
#include <vector>

namespace mllmsim {

struct SequenceGroup {
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::int64_t cross_keys = 0;  // of each sequence

  auto operator<=>(const SequenceGroup&) const = default;
};

struct TokenBatch {
  std::vector<SequenceGroup> groups;

  std::int64_t tokens() const {
    std::int64_t n = 0;
    for (const SequenceGroup& g : groups) n += g.length * g.count;
    return n;
  }
  std::int64_t sequences() const {
    std::int64_t n = 0;
    for (const SequenceGroup& g : groups) n += g.count;
    return n;
  }
  std::int64_t cross_keys() const {
    std::int64_t n = 0;
    for (const SequenceGroup& g : groups) n += g.cross_keys * g.count;
    return n;
  }
  auto operator<=>(const TokenBatch&) const = default;
};

struct MicroBatch {
  std::vector<TokenBatch> encoders;  // one entry per encoder; a sequence is a tile
  TokenBatch llm;
  std::int64_t samples = 0;

  auto operator<=>(const MicroBatch&) const = default;
};

}  // namespace mllmsim
