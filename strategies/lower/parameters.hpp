// Parameters on one GPU: 1/tp of what its layers have.
#pragma once

#include <cstdint>

#include "strategies/job/chunk.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::lower {

std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& layer, bool only_trained);
std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained);

}  // namespace mllmsim::lower
