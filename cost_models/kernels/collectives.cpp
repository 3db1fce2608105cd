#include "cost_models/kernels/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

struct Neighbours {
  const NodeCollective* below = nullptr;  // most ranks not above the wanted number, or the fewest
  const NodeCollective* above = nullptr;  // fewest ranks not below it, or the most
};

Neighbours neighbours(const CollectiveModel& model, CollectiveOp op, int ranks) {
  Neighbours found;
  for (const NodeCollective& curve : model.node) {
    if (curve.op != op) continue;
    if (!found.below || curve.ranks <= ranks) found.below = &curve;
    if (!found.above || found.above->ranks < ranks) found.above = &curve;
  }
  check(found.below != nullptr, "collective model without this operation");
  return found;
}

// What stands for an operation inside a node.
CollectiveOp measured_op(const CollectiveModel& model, CollectiveOp op) {
  const bool found = std::any_of(model.node.begin(), model.node.end(),
                                 [&](const NodeCollective& n) { return n.op == op; });
  return found || op != CollectiveOp::all_to_all ? op : CollectiveOp::all_gather;
}

Cost time_in_node(const CollectiveModel& model, const ClusterSpec& cluster, const Collective& c) {
  const double speed = cluster.nvlink_bandwidth / model.nvlink_bandwidth;
  const auto bytes = static_cast<double>(c.bytes.value);
  const double v = bus_bytes(c.op, c.group.ranks, bytes) / speed;
  const CollectiveOp op = measured_op(model, c.op);
  const auto [below, above] = neighbours(model, op, c.group.ranks);
  const double low_bytes = v / bus_bytes(c.op, below->ranks, 1);
  const double low = std::log(below->curve.at(low_bytes).value);
  Source source = model.node_provenance.source;
  if (op != c.op) source = weaker(source, Source::estimate);
  if (speed != 1) source = weaker(source, Source::transferred);
  if (below->ranks == c.group.ranks) {
    const Source coverage = below->curve.coverage(low_bytes);
    if (coverage == Source::measured && source == Source::interpolated) source = coverage;
    return {Seconds{std::exp(low)}, weaker(source, coverage)};
  }
  if (below == above) return {Seconds{std::exp(low)}, Source::estimate};
  const double from = std::log2(below->ranks), to = std::log2(above->ranks);
  const double part = (std::log2(c.group.ranks) - from) / (to - from);
  const double high = std::log(above->curve.at(v / bus_bytes(c.op, above->ranks, 1)).value);
  return {Seconds{std::exp(low + part * (high - low))},
          weaker(source, below->curve.coverage(low_bytes))};
}

// Of bus bytes.
BytesPerSecond best_bandwidth(const CollectiveModel& model, const ClusterSpec& cluster,
                              CollectiveOp op, int ranks) {
  if (ranks == 1) return {std::numeric_limits<double>::infinity()};
  const NodeCollective& node = *neighbours(model, op, ranks).below;
  return node.curve.best_bandwidth() * bus_bytes(op, node.ranks, 1) *
         (cluster.nvlink_bandwidth / model.nvlink_bandwidth);
}

Seconds network_time(const NetworkLine& line, CollectiveOp op, const GroupShape& group, double v,
                     const NetworkShare& share, BytesPerSecond node_bandwidth) {
  const double rounds = op == CollectiveOp::all_reduce ? 2 : 1;
  const double between = rounds * (line.tree ? std::log2(group.nodes) : group.nodes - 1.0);
  const double within =
      rounds * (line.tree ? group.ranks_per_node() - 1.0 : group.ranks - group.nodes);
  const double efficiency =
      line.idle_efficiency + (line.busy_efficiency - line.idle_efficiency) * share.load;
  const double bandwidth = std::min(share.bandwidth.value * efficiency, node_bandwidth.value);
  return {line.base.value + between * line.network_step.value + within * line.node_step.value +
          v / bandwidth};
}

}  // namespace

double bus_bytes(CollectiveOp op, int ranks, double bytes) {
  return bytes * (op == CollectiveOp::all_reduce ? 2 : 1) * (ranks - 1) / ranks;
}

NetworkShare network_share(const ClusterSpec& cluster, const GroupShape& group) {
  const double nics = cluster.nics_per_domain(), siblings = std::max(1, group.sibling_groups);
  const double near = std::max(1.0, nics * group.ranks_per_node() / cluster.gpus_per_domain());
  const double used = std::min(near, nics / siblings);
  const double between = group.crosses_leaves ? cluster.cross_leaf_share : 1;
  return {cluster.nic_bandwidth * (used * between), std::min(1.0, used * siblings / nics)};
}

Cost collective_time(const CollectiveModel& model, const ClusterSpec& cluster,
                     const Collective& c) {
  if (c.group.ranks <= 1) return {Seconds{0}, Source::measured};
  if (c.group.nodes == 1) return time_in_node(model, cluster, c);

  const bool to_all = c.op == CollectiveOp::all_to_all;
  const CollectiveOp op = to_all ? CollectiveOp::all_gather : c.op;
  const auto found = std::find_if(model.network.begin(), model.network.end(),
                                  [&](const NetworkCollective& n) { return n.op == op; });
  check(found != model.network.end(), "collective model without this operation across nodes");
  const auto bytes = static_cast<double>(c.bytes.value);
  const int here = c.group.ranks_per_node();
  const double v = to_all ? bytes * here * (c.group.ranks - here) / c.group.ranks
                          : bus_bytes(c.op, c.group.ranks, bytes);
  const NetworkShare share = network_share(cluster, c.group);
  if (to_all) {
    Seconds best{std::numeric_limits<double>::infinity()};
    for (const NetworkLine& line : found->lines) {
      const double efficiency =
          line.idle_efficiency + (line.busy_efficiency - line.idle_efficiency) * share.load;
      best = std::min(best, Seconds{line.base.value + line.network_step.value +
                                    v / (share.bandwidth.value * efficiency)});
    }
    return {best, Source::estimate};
  }
  const BytesPerSecond node = best_bandwidth(model, cluster, c.op, c.group.ranks_per_node());
  Seconds best{std::numeric_limits<double>::infinity()};
  for (const NetworkLine& line : found->lines)
    best = std::min(best, network_time(line, c.op, c.group, v, share, node));
  // The network is always another one than the measured; below the measured sizes it is a guess.
  const bool small = c.bytes.value < found->smallest_bytes;
  return {best, small ? Source::estimate : weaker(found->provenance.source, Source::transferred)};
}

}  // namespace mllmsim::costs
