// Fits the launch time of all operations together, and an efficiency for each operation (and row
// length, where rows matter), or a curve through its sizes where that fits better.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"

namespace mllmsim::fit {
namespace {

constexpr std::size_t kFewestSizes = 5;

bool depends_on_row(costs::MemoryOp op) {
  return op == costs::MemoryOp::norm || op == costs::MemoryOp::norm_backward ||
         op == costs::MemoryOp::softmax || op == costs::MemoryOp::cross_entropy ||
         op == costs::MemoryOp::cross_entropy_backward;
}

using Node = std::pair<costs::MemoryOp, std::int64_t>;  // op, row length (1 if it does not matter)

Node node_of(const costs::MemoryBound& k) {
  return {k.op, depends_on_row(k.op) ? std::max<std::int64_t>(k.row_length, 1) : 1};
}

std::uint64_t hash(const costs::MemoryBound& k) {
  return shape_hash({static_cast<std::int64_t>(k.op), k.bytes.value, k.row_length});
}

// Time through the measured sizes, where that says more than one bandwidth: the error at each size
// with that size left out is smaller.
void fit_curve(const std::vector<Measurement<costs::MemoryBound>>& raw,
               costs::MemoryOperation& operation) {
  std::vector<costs::SizePoint> points;
  for (const auto& m : raw)
    if (m.kernel.op == operation.op)
      points.push_back({static_cast<double>(m.kernel.bytes.value), m.time});
  if (points.size() < kFewestSizes) return;
  Errors errors;
  add_left_out_errors(points, errors);
  const costs::Provenance curve = errors.provenance(points.size());
  const bool measured = operation.provenance.median_error > 0;  // some were held out
  if (measured && curve.median_error >= operation.provenance.median_error) return;
  operation.curve = costs::size_curve(points, points.front().time);
  operation.provenance = curve;
}

}  // namespace

void fit_memory_bound(const std::vector<Measurement<costs::MemoryBound>>& raw,
                      const costs::Gpu& gpu, costs::MemoryBoundModel& model) {
  std::map<costs::MemoryOp, std::set<std::int64_t>> sizes;
  for (const auto& m : raw) sizes[m.kernel.op].insert(m.kernel.bytes.value);
  // Of few sizes none is held out: there would be nothing left to fit.
  const auto tested = [&](const costs::MemoryBound& k) {
    return sizes.at(k.op).size() >= kFewestSizes && held_out(hash(k));
  };
  std::map<Node, Eigen::Index> nodes;
  std::vector<Measurement<costs::MemoryBound>> points;
  for (const auto& m : raw)
    if (!tested(m.kernel)) {
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
  for (const auto& [node, index] : nodes)
    if (std::none_of(model.operations.begin(), model.operations.end(),
                     [&op = node.first](const auto& o) { return o.op == op; }))
      model.operations.push_back({node.first, {}, {}, {}});
  for (costs::MemoryOperation& operation : model.operations) {
    std::vector<costs::RowEfficiency> rows;
    for (const auto& [node, index] : nodes)
      if (node.first == operation.op) rows.push_back({node.second, efficiency(x[index])});
    if (rows.empty()) continue;
    operation.rows = std::move(rows);
    operation.curve.reset();
    Errors errors;
    std::size_t count = 0;
    for (const auto& m : raw) {
      if (m.kernel.op != operation.op) continue;
      ++count;
      if (tested(m.kernel)) errors.add(costs::memory_bound_time(model, gpu, m.kernel).time, m.time);
    }
    operation.provenance = errors.provenance(count);
    fit_curve(raw, operation);
  }
}

}  // namespace mllmsim::fit
