// The network between NVLink domains: switches, the cables between them, and where the NICs are
// plugged in. A topology is a function from a ClusterSpec to a Fabric; the Network routes on
// whatever it gets.
//
// Rails are joined by spines of their own. NCCL sends between rails over NVLink to the GPU of the
// sender's node that is on the receiver's rail (PXN, since NCCL 2.12), so spines that join rails,
// where there are any, carry none of it.
#pragma once

#include <string>
#include <vector>

#include "sim/world/cluster.hpp"

namespace mllmsim {

struct Fabric {
  struct Cable {
    int a = 0, b = 0;            // switches
    BytesPerSecond bandwidth{};  // each way
  };
  std::vector<std::string> switches;  // their names
  std::vector<int> switch_of_nic;
  std::vector<Cable> cables;
};

// Empty if NVLink joins all GPUs.
Fabric fabric_of(const ClusterSpec& spec);

}  // namespace mllmsim
