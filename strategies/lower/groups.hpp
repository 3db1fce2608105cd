// Where the data-parallel group of a pipeline rank sits, and what its collectives put on the
// network.
#pragma once

#include <vector>

#include "cost_models/kernels/kernel.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/cluster.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim::lower {

// GPUs of each data-parallel group of one pipeline rank, cp ranks included: one group per tp rank;
// they communicate at the same time.
std::vector<std::vector<int>> dp_groups(const Parallelism& parallelism, int pipeline_rank);
// The same of the replicas [first, last).
std::vector<std::vector<int>> dp_groups(const Parallelism& parallelism, int pipeline_rank,
                                        int first, int last);

// GPUs of one pipeline rank that hold the same experts, for each of ep x etp sets of experts.
std::vector<std::vector<int>> expert_groups(const Parallelism& parallelism, int pipeline_rank);

// Every group cut into parts of `size` neighbours.
std::vector<std::vector<int>> parts_of(const std::vector<std::vector<int>>& groups, int size);
// The GPUs that hold the same shard in each of `copies` parts of every group (HSDP).
std::vector<std::vector<int>> peers_of(const std::vector<std::vector<int>>& groups, int copies);

costs::GroupShape shape_of(const std::vector<std::vector<int>>& groups, const ClusterSpec& cluster);

// What one member of a ring sends for a buffer of this size: (n - 1) / n of it, twice for an
// all-reduce.
Bytes sent_by_each(costs::CollectiveOp op, Bytes buffer, int ranks);

}  // namespace mllmsim::lower
