// Packs: samples that go through the model as one sequence, each attending only to itself, so
// nothing is padded.
//
// A pack holds at most Q_v tiles and Q_t tokens (OmniBal, arXiv 2407.20761). A sample that is over
// a limit by itself gets a pack of its own and is listed as oversized. Every sample is in exactly
// one pack.
#pragma once

#include "strategies/data/samples.hpp"

namespace mllmsim::data {

using PackLimits = Load;  // Q_v and Q_t

// Carries its sizes along: a shuffled list of indices would fetch every sample from anywhere in
// memory.
struct Item {
  Sample sample;
  SampleIndex index;
};

struct Packing {
  SampleGroups packs;
  std::vector<SampleIndex> oversized;  // ascending
};

inline bool fits(const Load& load, const PackLimits& limits) {
  return load.tiles <= limits.tiles && load.tokens <= limits.tokens;
}
inline bool fits(const Sample& s, const PackLimits& limits) {
  return s.tiles <= limits.tiles && s.tokens <= limits.tokens;
}

// As the paper chooses them: Q_t is 4,096 tokens, the longest text of data that is cut there (where
// the authors' script starts, too), or the longest sample if that is longer; Q_v is as many tiles
// as go with Q_t tokens at the mean number of tokens per tile (the mean over samples of tokens /
// tiles, rounded), but no fewer than any sample has. The longest sample alone would not do: where
// all texts are short, a pack would hold two.
PackLimits choose_limits(std::span<const Sample> samples);

// No packing has fewer packs than this; the proof is beside the code.
std::size_t fewest_packs(std::span<const Sample> samples, const PackLimits& limits);

}  // namespace mllmsim::data
