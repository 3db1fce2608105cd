// Packs by best fit on both axes: fewer packs than ISF and nearly equal ones, in one pass.
//
// All packs, as many as the lower bound asks for, are open at once, and samples are dealt from the
// largest. First those of more than half of Q_t tokens, one per pack. Then those of several tiles,
// most tiles first, to the pack with the most room in tiles, so that all keep room for small ones.
// Last those of the fewest tiles, most tokens first, to the pack that wants the most
//
//   tokens per tile = (mean tokens per pack - its tokens) / (tiles it has left)
//
// which fills the tiles to the last one while the tokens approach the mean. What fits nowhere is
// packed at the end. Packs wait in a queue of 4096 levels, so the time is linear in the samples.
// Nothing is random.
#pragma once

#include "strategies/data/packing/packing.hpp"

namespace mllmsim::data {

Packing pack_best_fit(std::span<const Sample> samples, const PackLimits& limits);

}  // namespace mllmsim::data
