// The layers one pipeline rank holds in one virtual stage, each with its recompute choice.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim {

struct PlannedLayer {
  Layer layer;
  Recompute recompute = Recompute::none;
  // Full recompute of several blocks together: how many of them come before this one. Only the
  // first keeps its input; all run again before the backward of the last.
  std::uint16_t behind = 0;

  bool operator==(const PlannedLayer&) const = default;
};

// Empty if times are given instead of a model.
using Chunk = std::vector<PlannedLayer>;

// First and last block of those that recompute together with layer i; i and i if it does so alone.
inline std::pair<std::size_t, std::size_t> recompute_unit(const Chunk& chunk, std::size_t i) {
  const std::size_t first = i - chunk[i].behind;
  std::size_t last = i;
  while (last + 1 < chunk.size() && chunk[last + 1].behind > 0) ++last;
  return {first, last};
}

}  // namespace mllmsim
