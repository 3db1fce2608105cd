// A head that is tied to the embedding of another pipeline stage works with a copy of it. Both
// copies are held, reduced over replicas and updated; before that, Megatron's embedding group (the
// two stages of each pipeline) adds up their gradients, behind all other reductions.
#pragma once

#include "strategies/job/chunk.hpp"
#include "strategies/lower/communication.hpp"

namespace mllmsim::lower {

// Parameters of the copy on one GPU of the rank with these chunks; 0 if it has none.
std::int64_t copied_embedding(const Job& job, const std::vector<Chunk>& chunks);

void reduce_tied_embedding(StepBuilder& step, Communication& communication);

}  // namespace mllmsim::lower
