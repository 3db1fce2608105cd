// Parameters on one GPU, 1/tp of what its layers have, and how their gradients are reduced.
#pragma once

#include <cstdint>

#include "strategies/job/chunk.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::lower {

std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& layer, bool only_trained);
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

// What a GPU has of a layer's parameters once they are gathered: products' weights in the format
// of products if that is what travels.
std::int64_t gathered_layer_bytes(const Job& job, const PlannedLayer& layer, bool only_trained);
// Whether products of the layer are quantised.
bool is_quantised(const Job& job, const PlannedLayer& layer);

// zero_stage 0 to 2: to the GPU that updates them (reduce-scatter); otherwise to all (all-reduce).
bool scatters_gradients(const Job& job);

}  // namespace mllmsim::lower
