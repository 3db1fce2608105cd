// The layers one pipeline rank holds in one virtual stage, each with its recompute choice.
#pragma once

#include <vector>

#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim {

struct PlannedLayer {
  Layer layer;
  Recompute recompute = Recompute::none;
};

// Empty if times are given instead of a model.
using Chunk = std::vector<PlannedLayer>;

}  // namespace mllmsim
