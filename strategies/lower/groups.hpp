// Where the data-parallel group of a pipeline rank sits, and what its collectives put on the
// network.
#pragma once

#include <vector>

#include "cost_models/kernels/kernel.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/cluster.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim::lower {

// GPUs of each data-parallel group of one pipeline rank: one group per tp rank; they communicate at
// the same time.
std::vector<std::vector<int>> dp_groups(const Parallelism& parallelism, int pipeline_rank);

costs::GroupShape shape_of(const std::vector<std::vector<int>>& groups, const ClusterSpec& cluster);

// What one member of a ring sends for a buffer of this size: (n - 1) / n of it, twice for an
// all-reduce.
Bytes sent_by_each(costs::CollectiveOp op, Bytes buffer, int ranks);

}  // namespace mllmsim::lower
