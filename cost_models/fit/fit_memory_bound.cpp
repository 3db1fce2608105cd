// Fits the launch time of all operations together, and an efficiency for each operation (and row
// length, where rows matter).
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"

namespace mllmsim::fit {
namespace {

bool depends_on_row(costs::MemoryOp op) {
  return op == costs::MemoryOp::norm || op == costs::MemoryOp::norm_backward ||
         op == costs::MemoryOp::softmax || op == costs::MemoryOp::cross_entropy;
}

using Node = std::pair<costs::MemoryOp, std::int64_t>;  // op, row length (1 if it does not matter)

Node node_of(const costs::MemoryBound& k) {
  return {k.op, depends_on_row(k.op) ? std::max<std::int64_t>(k.row_length, 1) : 1};
}

std::uint64_t hash(const costs::MemoryBound& k) {
  return shape_hash({static_cast<std::int64_t>(k.op), k.bytes.value, k.row_length});
}

}  // namespace

void fit_memory_bound(const std::vector<Measurement<costs::MemoryBound>>& raw,
                      const costs::Gpu& gpu, costs::MemoryBoundModel& model) {
  std::map<Node, Eigen::Index> nodes;
  std::vector<Measurement<costs::MemoryBound>> points;
  for (const auto& m : raw)
    if (!held_out(hash(m.kernel))) {
      points.push_back(m);
      nodes.try_emplace(node_of(m.kernel), static_cast<Eigen::Index>(nodes.size()) + 1);
    }
  if (points.size() < nodes.size() + 1) return;

  Eigen::VectorXd x =
      Eigen::VectorXd::Constant(static_cast<Eigen::Index>(nodes.size()) + 1, std::log(0.8));
  x[0] = std::log(2.5e-6);
  const auto launch = [](const Eigen::VectorXd& y) { return Bounded{1e-8, 1e-4}(y[0]); };
  const auto efficiency = [](double y) { return Bounded{0.001, 2}(y); };
  x = minimise(
      [&](const Eigen::VectorXd& y) {
        Eigen::VectorXd r(static_cast<Eigen::Index>(points.size()));
        for (std::size_t i = 0; i < points.size(); ++i) {
          const costs::MemoryBound& k = points[i].kernel;
          const BytesPerSecond rate = gpu.memory_bandwidth * efficiency(y[nodes.at(node_of(k))]);
          r[static_cast<Eigen::Index>(i)] =
              log_error(Seconds{launch(y)} + k.bytes / rate, points[i].time);
        }
        return r;
      },
      x);

  model.launch = {launch(x)};
  for (costs::MemoryOperation& operation : model.operations) {
    std::vector<costs::RowEfficiency> rows;
    for (const auto& [node, index] : nodes)
      if (node.first == operation.op) rows.push_back({node.second, efficiency(x[index])});
    if (rows.empty()) continue;
    operation.rows = std::move(rows);
    Errors errors;
    std::size_t count = 0;
    for (const auto& m : raw) {
      if (m.kernel.op != operation.op) continue;
      ++count;
      if (held_out(hash(m.kernel)))
        errors.add(costs::memory_bound_time(model, gpu, m.kernel).time, m.time);
    }
    operation.provenance = errors.provenance(count);
  }
}

}  // namespace mllmsim::fit
