// The machines: nodes of GPUs behind an NVSwitch, NICs, and a two-level network.
//
//   gpu --- nvswitch        every GPU to its node's switch, nvlink_bandwidth each way
//   gpu --- nic --- leaf    GPU g of a node uses NIC g * nics / gpus;
//                           a leaf serves nodes_per_leaf nodes
//   leaf === spine          one aggregate uplink per leaf:
//                           its nodes' NIC bandwidth / oversubscription
//
// Every edge is two directed links, one each way. Bandwidths are per direction. Latencies are not
// here: they belong to the calibration.
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace mllmsim {

struct ClusterSpec {
  std::string name;
  std::string calibration;  // name or path of the GPU's calibration file
  int nodes = 1;
  int gpus_per_node = 8;
  Bytes gpu_memory{};
  // Per GPU and direction: half of what data sheets call NVLink bandwidth.
  BytesPerSecond nvlink_bandwidth{};
  int nics_per_node = 8;
  BytesPerSecond nic_bandwidth{};  // per NIC and direction
  int nodes_per_leaf = 32;
  double oversubscription = 1.0;
  // What a collective between leaves gets of its NICs' bandwidth: all with adaptive routing; where
  // ECMP hashes as many flows onto as many uplinks, 1 - 1/e = 0.63 on average.
  double cross_leaf_share = 1.0;
  // Standard deviation of the speeds of GPUs of one kind, over their mean.
  // All wait for the slowest.
  double gpu_speed_spread = 0;

  int gpus() const { return nodes * gpus_per_node; }
  int node_of(int gpu) const { return gpu / gpus_per_node; }
  // Network bandwidth of one GPU when all GPUs of its node communicate at once.
  BytesPerSecond network_bandwidth_per_gpu() const {
    return nic_bandwidth * static_cast<double>(nics_per_node) / static_cast<double>(gpus_per_node);
  }
};

}  // namespace mllmsim
