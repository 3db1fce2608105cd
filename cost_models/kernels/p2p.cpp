#include "cost_models/kernels/p2p.hpp"

#include <algorithm>

namespace mllmsim::costs {

Cost p2p_time(const P2pModel& model, const ClusterSpec& cluster, const PointToPoint& message) {
  const auto bytes = static_cast<double>(message.bytes.value);
  if (!message.same_node) {
    const double nic =
        cluster.nic_bandwidth.value * model.nic_efficiency / std::max(1, message.nic_sharers);
    const double bandwidth = std::min(model.message_bandwidth.value, nic);
    return {Seconds{model.network_latency.value + bytes / bandwidth},
            weaker(model.network_provenance.source, Source::transferred)};
  }
  const double speed = cluster.nvlink_bandwidth / model.nvlink_bandwidth;
  Source source = weaker(model.node_provenance.source, model.node.coverage(bytes / speed));
  if (speed != 1) source = weaker(source, Source::transferred);
  return {model.node.at(bytes / speed), source};
}

}  // namespace mllmsim::costs
