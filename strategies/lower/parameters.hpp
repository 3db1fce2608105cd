// Parameters on one GPU, 1/tp of what its layers have but for experts with ranks of their own, and
// how their gradients are reduced.
#pragma once

#include <cstdint>

#include "sim/world/rank_parameters.hpp"
#include "strategies/job/chunk.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::lower {

// Whether two layers have equally many.
bool holds_like(const Job& job, const PlannedLayer& a, const PlannedLayer& b);
// By who shares them; per GPU all of it.
RankParameters parameters_of(const Job& job, const PlannedLayer& layer, bool only_trained);
RankParameters parameters_of(const Job& job, const Chunk& chunk, bool only_trained);
std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& layer, bool only_trained);
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

// What a GPU has of a layer's parameters once they are gathered: products' weights in the format
// of products if that is what travels.
RankParameters gathered_layer_bytes(const Job& job, const PlannedLayer& layer, bool only_trained);
// Whether products of the layer are quantised.
bool is_quantised(const Job& job, const PlannedLayer& layer);

// What one GPU holds of a layer's gradients between backwards.
Bytes gradients_of(const Job& job, const PlannedLayer& layer);
// Whether they take memory only from the first backward on: they are made there, and are not those
// that buckets hold anyway.
bool gradients_appear(const Job& job, std::size_t micro_batches);
// zero_stage 0: replicas reduce copies of them.
bool copies_gradients(const Job& job);

// zero_stage 0 to 2: to the GPU that updates them (reduce-scatter); otherwise to all (all-reduce).
bool scatters_gradients(const Job& job);

}  // namespace mllmsim::lower
