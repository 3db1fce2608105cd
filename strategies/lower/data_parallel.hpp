// Parameters and gradients over the replicas, for zero_stage 0, 1 and 2.
//
//   zero_stage 1   all-gather of parameters before the step's first use, reduce-scatter of
//                  gradients after the last backward
//   zero_stage 0   all-reduce of gradients at the same place
//   zero_stage 2   as 1, but a rank keeps only its share of gradients: every backward of every
//                  micro-batch reduce-scatters its own, as much as fits a bucket in memory at once
//
// Overlapped, each chunk has its own, joined to its first forward and its last backward. Rank 0's
// chunk 0 is on the critical path with both, since its forward is the first of all and its backward
// the last: it is cut into buckets of layers (buckets.hpp), so that only the first bucket's gather
// and the last one's reduction are exposed. Not overlapped, a rank gathers and reduces everything
// at once.
#pragma once

#include "sim/world/rank_parameters.hpp"
#include "strategies/lower/communication.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

inline bool in_buckets(const Parallelism& parallelism, int rank, std::uint32_t chunk) {
  return rank == 0 && chunk == 0 && parallelism.gradient_ranks() > 1;
}

// Trained parameters of all chunks of a rank, on one GPU.
RankParameters trained_on_rank(const StepBuilder& step, int rank);

void add_data_parallel(StepBuilder& step, Communication& communication);

}  // namespace mllmsim::lower
