// Time of a message between two GPUs, by route.
//
//   in a node      time = curve(bytes) through the measured sizes, which scale with NVLink
//   across nodes   time = latency + bytes / min(message bandwidth, nic * nic_efficiency / sharers)
//
// NCCL drives one peer over few channels, so that a message alone does not fill a fast NIC: the
// message bandwidth caps it whatever the NIC. Left out: routes through another GPU's NIC (PXN),
// which pipeline neighbours on the same rail do not need.
#pragma once

#include "cost_models/kernels/size_curve.hpp"
#include "sim/world/cluster.hpp"

namespace mllmsim::costs {

struct P2pModel {
  BytesPerSecond nvlink_bandwidth{};  // where the curve was measured
  Provenance node_provenance, network_provenance;
  SizeCurve node;
  Seconds network_latency{};
  BytesPerSecond message_bandwidth{};
  double nic_efficiency = 0;
};

Cost p2p_time(const P2pModel& model, const ClusterSpec& cluster, const PointToPoint& message);

}  // namespace mllmsim::costs
