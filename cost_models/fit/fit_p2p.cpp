// The curve of messages inside a node, and latency and bandwidth of those across nodes.
#include <algorithm>
#include <cmath>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"

namespace mllmsim::fit {
namespace {

constexpr std::size_t kFewestTransfers = 3;

void fit_network(const std::vector<costs::SizePoint>& points, costs::P2pModel& model) {
  const auto time = [](const Eigen::VectorXd& x, double bytes) {
    return Seconds{Bounded{1e-7, 1e-2}(x[0]) + bytes / Bounded{1e6, 1e13}(x[1])};
  };
  Eigen::VectorXd x(2);
  x << std::log(model.network_latency.value), std::log(model.message_bandwidth.value);
  x = minimise(
      [&](const Eigen::VectorXd& y) {
        Eigen::VectorXd r(static_cast<Eigen::Index>(points.size()));
        for (std::size_t i = 0; i < points.size(); ++i)
          r[static_cast<Eigen::Index>(i)] = log_error(time(y, points[i].bytes), points[i].time);
        return r;
      },
      x);
  model.network_latency = {std::exp(x[0])};
  model.message_bandwidth = {std::exp(x[1])};
  Errors errors;
  for (const costs::SizePoint& p : points) errors.add(time(x, p.bytes), p.time);
  model.network_provenance = errors.provenance(points.size());
}

void fit_node(const std::vector<costs::SizePoint>& points, costs::P2pModel& model) {
  Errors errors;
  add_left_out_errors(points, errors);
  model.node = costs::size_curve(points, model.node.latency);
  model.node_provenance = errors.provenance(points.size());
}

}  // namespace

void fit_p2p(const std::vector<Measurement<costs::PointToPoint>>& raw, const costs::Gpu& gpu,
             costs::P2pModel& model) {
  std::vector<costs::SizePoint> node, across;
  for (const auto& m : raw)
    (m.kernel.same_node ? node : across)
        .push_back({static_cast<double>(m.kernel.bytes.value), m.time});
  if (node.size() >= kFewestTransfers) {
    fit_node(node, model);
    model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  }
  if (across.size() >= kFewestTransfers) fit_network(across, model);
}

}  // namespace mllmsim::fit
