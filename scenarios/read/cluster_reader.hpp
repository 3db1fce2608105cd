// A resolved cluster table to a ClusterSpec.
//
// nvlink_bandwidth is written as data sheets have it, both directions together ("600 GB/s" for an
// A100); a ClusterSpec holds one direction. NIC bandwidth is per direction in both.
#pragma once

#include <string>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "sim/world/cluster.hpp"

namespace mllmsim::scenarios {

ClusterSpec read_cluster(const Node& table, const std::string& key, Problems& problems);

// For runs whose times are given: just enough GPUs, in nodes of at most 8.
ClusterSpec cluster_of(int gpus);

}  // namespace mllmsim::scenarios
