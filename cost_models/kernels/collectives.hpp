// Time of NCCL collectives.
//
// Bytes count as in nccl-tests: the gathered result, the input to scatter, the reduced vector.
// "Bus bytes" of n ranks are
//
//   v = bytes * (n-1)/n     for all-gather, reduce-scatter and all-to-all, twice for all-reduce.
//
//   inside a node   time = curve(bytes) through the measured sizes (size_curve.hpp)
//
// for every measured number of ranks. Other numbers of ranks are interpolated between their
// neighbours: log time at equal v, linear in log2 ranks. Sizes scale with the cluster's NVLink.
//
//   across nodes    time = min over lines of
//                     base + steps between nodes * network_step + steps in nodes * node_step
//                     + v / min(network share * efficiency(load), the node's best bandwidth)
//
//   steps           between nodes     in nodes                  twice that for all-reduce
//     ring          nodes - 1         n - nodes
//     tree          log2(nodes)       ranks per node - 1
//
// The network share of a group is what the NICs near its GPUs of one node give, or its part of all
// NICs if its siblings communicate at once.
//
// An all-to-all is not a ring: every rank sends all that leaves its node itself, so that with r
// ranks per node v above is r * bytes * (n - r)/n, at the efficiency of an all-gather, and its
// messages are (n - r) steps at once. Inside a node it falls back to an all-gather's curve where it
// was not measured.
//
// Left out: oversubscribed uplinks (the simulated network has them), and groups that are spread
// unevenly.
#pragma once

#include <vector>

#include "cost_models/kernels/size_curve.hpp"
#include "sim/world/cluster.hpp"

namespace mllmsim::costs {

struct NodeCollective {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 0;
  SizeCurve curve;
};

struct NetworkLine {
  bool tree = false;
  Seconds base{}, network_step{}, node_step{};
  // Of the group's share of NIC bandwidth: with the node's other NICs idle, and with all busy;
  // linear in the load between.
  double idle_efficiency = 0, busy_efficiency = 0;
};

struct NetworkCollective {
  CollectiveOp op = CollectiveOp::all_reduce;
  Provenance provenance;
  std::int64_t smallest_bytes = 0;  // measured; below is an estimate
  std::vector<NetworkLine> lines;
};

struct CollectiveModel {
  BytesPerSecond nvlink_bandwidth{};  // where it was measured
  Provenance node_provenance;         // of all curves together
  // By op, then rising ranks; at least one of each op but all_to_all.
  std::vector<NodeCollective> node;
  std::vector<NetworkCollective> network;  // one of each op but all_to_all
};

double bus_bytes(CollectiveOp op, int ranks, double bytes);

struct NetworkShare {
  BytesPerSecond bandwidth{};  // of the NICs that the group's GPUs of one node have together
  double load = 0;             // share of the node's NIC bandwidth in use, siblings included
};
NetworkShare network_share(const ClusterSpec& cluster, const GroupShape& group);

Cost collective_time(const CollectiveModel& model, const ClusterSpec& cluster,
                     const Collective& collective);

}  // namespace mllmsim::costs
