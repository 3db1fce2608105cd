// Curves of the collectives inside a node for each operation and number of ranks, and a fit of the
// ring and tree lines across nodes for each operation.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"

namespace mllmsim::fit {
namespace {

// A line of the base that spends longer per step than this is a bandwidth protocol, which large
// messages determine; quicker ones only matter at sizes that may not have been measured.
constexpr Seconds kQuickStep{6e-6};

using CollectivePoint = Measurement<costs::Collective>;

costs::NodeCollective node_curve(costs::CollectiveOp op, int ranks,
                                 const std::vector<CollectivePoint>& points, Seconds latency,
                                 Errors& errors) {
  std::vector<costs::SizePoint> sizes;
  for (const CollectivePoint& p : points)
    sizes.push_back({static_cast<double>(p.kernel.bytes.value), p.time});
  add_left_out_errors(sizes, errors);
  return {op, ranks, costs::size_curve(sizes, latency)};
}

class NetworkFit {
 public:
  NetworkFit(const costs::CollectiveModel& model, const MeasuredNetwork& network,
             const costs::Gpu& gpu)
      : model_(model), candidate_(model) {
    cluster_.gpus_per_node = network.gpus_per_node;
    cluster_.nics_per_node = network.nics_per_node;
    cluster_.nic_bandwidth = network.nic_bandwidth;
    cluster_.nvlink_bandwidth = gpu.nvlink_bandwidth;
  }

  // Fits the lines of bandwidth protocols. An all-reduce's ring is a reduce-scatter and an
  // all-gather, so only its tree is fitted, with the node steps of the ring.
  void run(const std::vector<CollectivePoint>& points, costs::NetworkCollective& curve) {
    const bool all_reduce = curve.op == costs::CollectiveOp::all_reduce;
    if (all_reduce) take_ring(curve);
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < curve.lines.size(); ++i)
      if (curve.lines[i].network_step > kQuickStep && curve.lines[i].tree == all_reduce)
        free.push_back(i);
    constexpr Bounded step{1e-7, 3e-4}, efficiency{0.05, 1};
    const Eigen::Index width = all_reduce ? 3 : 4;
    Eigen::VectorXd x(width * static_cast<Eigen::Index>(free.size()));
    for (std::size_t i = 0; i < free.size(); ++i) {
      const costs::NetworkLine& line = curve.lines[free[i]];
      const Eigen::Index at = width * static_cast<Eigen::Index>(i);
      x.segment<3>(at) << std::log(line.network_step.value),
          std::log(reached(points, false, line.idle_efficiency)),
          std::log(reached(points, true, line.busy_efficiency));
      if (!all_reduce) x[at + 3] = std::log(line.node_step.value);
    }
    const auto unpack = [&](const Eigen::VectorXd& y) {
      costs::NetworkCollective c = curve;
      for (std::size_t i = 0; i < free.size(); ++i) {
        const Eigen::Index at = width * static_cast<Eigen::Index>(i);
        costs::NetworkLine& line = c.lines[free[i]];
        line.network_step = {step(y[at])};
        line.idle_efficiency = efficiency(y[at + 1]);
        line.busy_efficiency = efficiency(y[at + 2]);
        if (!all_reduce) line.node_step = {step(y[at + 3])};
      }
      return c;
    };
    LeastSquaresOptions options;
    options.outlier = 0.1;
    x = minimise(
        [&](const Eigen::VectorXd& y) {
          const costs::NetworkCollective c = unpack(y);
          Eigen::VectorXd r(static_cast<Eigen::Index>(points.size()));
          for (std::size_t i = 0; i < points.size(); ++i)
            r[static_cast<Eigen::Index>(i)] = log_error(time(c, points[i].kernel), points[i].time);
          return r;
        },
        x, options);
    curve = unpack(x);
    report(points, curve);
  }

 private:
  // Efficiency of the best measurement with few or most NICs busy: the fit starts there, as above
  // what NVLink passes on nothing would tell it where to go.
  double reached(const std::vector<CollectivePoint>& points, bool busy, double otherwise) const {
    double best = 0;
    for (const CollectivePoint& p : points) {
      const costs::NetworkShare share = costs::network_share(cluster_, p.kernel.group);
      if ((share.load > 0.5) != busy) continue;
      const double v = costs::bus_bytes(p.kernel.op, p.kernel.group.ranks,
                                        static_cast<double>(p.kernel.bytes.value));
      best = std::max(best, v / p.time.value / share.bandwidth.value);
    }
    return best > 0 ? std::min(best, 1.0) : otherwise;
  }

  // The slow ring of the other operations for this one's; its node steps for the slow tree too.
  void take_ring(costs::NetworkCollective& curve) const {
    const auto slow_ring = [](const costs::NetworkLine& l) {
      return !l.tree && l.network_step > kQuickStep;
    };
    for (const costs::NetworkCollective& other : model_.network) {
      if (other.op != costs::CollectiveOp::all_gather) continue;
      const auto ring = std::find_if(other.lines.begin(), other.lines.end(), slow_ring);
      if (ring == other.lines.end()) return;
      for (costs::NetworkLine& line : curve.lines) {
        if (slow_ring(line)) line = *ring;
        if (line.tree && line.network_step > kQuickStep) line.node_step = ring->node_step;
      }
    }
  }

  Seconds time(const costs::NetworkCollective& curve, const costs::Collective& c) {
    candidate_.network = {curve};
    return costs::collective_time(candidate_, cluster_, c).time;
  }

  // Few points at few shapes: errors are those of the fit itself.
  void report(const std::vector<CollectivePoint>& points, costs::NetworkCollective& curve) {
    Errors errors;
    curve.smallest_bytes = std::numeric_limits<std::int64_t>::max();
    for (const CollectivePoint& p : points) {
      errors.add(time(curve, p.kernel), p.time);
      curve.smallest_bytes = std::min(curve.smallest_bytes, p.kernel.bytes.value);
    }
    curve.provenance = errors.provenance(points.size());
  }

  const costs::CollectiveModel& model_;
  costs::CollectiveModel candidate_;  // its curves inside nodes, and the line being tried
  ClusterSpec cluster_;
};

using NodePoints = std::map<std::pair<costs::CollectiveOp, int>, std::vector<CollectivePoint>>;

void fit_node(const NodePoints& node, const costs::Gpu& gpu, costs::CollectiveModel& model) {
  Errors errors;
  std::size_t count = 0;
  bool rings = false;  // or all_to_all alone, added to what was measured before
  for (const costs::CollectiveOp op :
       {costs::CollectiveOp::all_gather, costs::CollectiveOp::reduce_scatter,
        costs::CollectiveOp::all_reduce, costs::CollectiveOp::all_to_all}) {
    const auto base = std::find_if(model.node.begin(), model.node.end(),
                                   [&](const costs::NodeCollective& n) { return n.op == op; });
    const Seconds latency = base == model.node.end() ? Seconds{} : base->curve.latency;
    std::vector<costs::NodeCollective> curves;
    for (const auto& [key, points] : node) {
      if (key.first != op || std::ssize(points) < kFewestCollectives) continue;
      curves.push_back(node_curve(op, key.second, points, latency, errors));
      count += points.size();
    }
    if (curves.empty()) continue;
    rings |= op != costs::CollectiveOp::all_to_all;
    std::erase_if(model.node, [&](const costs::NodeCollective& n) { return n.op == op; });
    model.node.insert(model.node.end(), curves.begin(), curves.end());
  }
  if (!rings) return;
  model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  model.node_provenance = errors.provenance(count);
}

}  // namespace

void fit_collectives(const std::vector<Measurement<costs::Collective>>& raw, const costs::Gpu& gpu,
                     const MeasuredNetwork& network, costs::CollectiveModel& model) {
  NodePoints node;
  std::map<costs::CollectiveOp, std::vector<CollectivePoint>> across;
  for (const CollectivePoint& p : raw) {
    if (p.kernel.group.nodes == 1) {
      node[{p.kernel.op, p.kernel.group.ranks}].push_back(p);
    } else {
      across[p.kernel.op].push_back(p);
    }
  }
  fit_node(node, gpu, model);
  NetworkFit fit(model, network, gpu);
  for (costs::NetworkCollective& curve : model.network)
    if (std::ssize(across[curve.op]) >= kFewestCollectives) fit.run(across[curve.op], curve);
}

}  // namespace mllmsim::fit
