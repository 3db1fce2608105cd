// Parameters on one GPU, 1/tp of what its layers have, and how their gradients are reduced.
#pragma once

#include <cstdint>

#include "strategies/job/chunk.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::lower {

std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& layer, bool only_trained);
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

// zero_stage 0 and 1: to the GPU that updates them (reduce-scatter); otherwise to all (all-reduce).
bool scatters_gradients(const Job& job);

}  // namespace mllmsim::lower
