// Activation memory over a simulated step, from the deltas that tasks carry. Weights, gradients and
// optimizer state do not change during a step; they are ModelState.
#pragma once

#include <vector>

#include "sim/kernel/simulation.hpp"
#include "sim/world/software.hpp"

namespace mllmsim {

struct MemoryPoint {
  Time time;
  Bytes bytes;  // from here on
};

// One list per device: a point at each change, starting with (0, 0).
// At one instant frees come before allocations.
std::vector<std::vector<MemoryPoint>> memory_profile(const Program& program,
                                                     const Timeline& timeline);

Bytes peak(const std::vector<MemoryPoint>& profile);

// What one GPU holds all step long for `parameters` of its own (1/tp of its layers').
// zero_stage 1 shards the optimizer over `ranks`, stage 2 gradients too, stage 3 weights too.
// Frozen parameters are weights only.
struct ModelState {
  Bytes weights{}, gradients{}, optimizer{};
  Bytes total() const { return weights + gradients + optimizer; }
};
ModelState model_state(std::int64_t parameters, std::int64_t trained_parameters, int ranks,
                       int zero_stage, const Software& software);

}  // namespace mllmsim
