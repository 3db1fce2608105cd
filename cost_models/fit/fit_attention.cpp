// Fits one AttentionKernel for each head dim, mask and direction: first the closed form, then the
// table of corrections to it.
//
// A serving measurement takes longer than the kernel by the engine's own memory traffic,
//   overhead = 2 bytes * tokens * head_dim * (a * heads + b * kv_heads) / memory bandwidth,
// with a and b fitted and then dropped: training has no paged cache. On A100 this brings the fitted
// forward to the rates of the FlashAttention authors' charts, of which the raw times are half.
//
// The table minimises
//   sum (log error)^2 + smoothness * sum (second differences)^2,
// reweighted for outliers, with bilinear weights:
// nodes without points follow from their neighbours.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"

namespace mllmsim::fit {
namespace {

constexpr double kOutlier = 0.05;
constexpr double kSmoothness = 0.1;
constexpr double kPullToForm = 0.01;
constexpr int kTablePasses = 6;
constexpr double kSmallTile = 32;  // query rows of PyTorch's CPU kernel, up to 192 of them
constexpr std::size_t kFewestAttentions = 8;
constexpr std::size_t kFewAttentions = 100;

struct AttentionPoint {
  costs::AttentionShape shape;
  Seconds time;
  std::uint64_t hash;
};

struct Overhead {
  double per_head = 0, per_kv_head = 0;
};

double overhead(const Overhead& o, const costs::Gpu& gpu, const costs::AttentionShape& s) {
  return 2 * s.batch * s.length * s.head_dim * (o.per_head * s.heads + o.per_kv_head * s.kv_heads) /
         gpu.memory_bandwidth.value;
}

struct Model {
  costs::AttentionKernel kernel;
  Overhead serving;

  Seconds time(const costs::Gpu& gpu, const costs::AttentionShape& s) const {
    return {kernel.launch.value + costs::attention_busy(kernel, gpu, s).value +
            overhead(serving, gpu, s)};
  }
};

void fit_form(const std::vector<AttentionPoint>& points, const costs::Gpu& gpu, bool serving,
              Model& model) {
  const auto unpack = [&](const Eigen::VectorXd& x) {
    Model m = model;
    m.kernel.launch = {Bounded{1e-7, 1e-3}(x[0])};
    m.kernel.rate = Bounded{0.01, 10}(x[1]);  // above 1 where tiles are smaller than the form's
    m.kernel.k_overhead = Bounded{1, 4000}(x[2]);
    m.kernel.norm = 1 + Bounded{0.05, 20}(x[3]);
    if (serving) m.serving = {Bounded{0.01, 50}(x[4]), Bounded{0.01, 50}(x[5])};
    return m;
  };
  Eigen::VectorXd x(serving ? 6 : 4);
  x.head(4) << std::log(8e-6), std::log(0.6), std::log(60.), 0;
  if (serving) x.tail(2).setConstant(std::log(4.));
  LeastSquaresOptions options;
  options.outlier = 2 * kOutlier;
  x = minimise(
      [&](const Eigen::VectorXd& candidate) {
        const Model m = unpack(candidate);
        Eigen::VectorXd r(static_cast<Eigen::Index>(points.size()));
        for (std::size_t i = 0; i < points.size(); ++i)
          r[static_cast<Eigen::Index>(i)] = log_error(m.time(gpu, points[i].shape), points[i].time);
        return r;
      },
      x, options);
  model = unpack(x);
}

// An empty table over the octaves that hold points.
costs::AttentionTable table_over(const std::vector<AttentionPoint>& points) {
  double length_low = 1e9, length_high = 0, heads_low = 1e9, heads_high = 0;
  for (const AttentionPoint& p : points) {
    const double length = std::log2(p.shape.length);
    const double heads = std::log2(p.shape.batch * p.shape.heads);
    length_low = std::min(length_low, length), length_high = std::max(length_high, length);
    heads_low = std::min(heads_low, heads), heads_high = std::max(heads_high, heads);
  }
  costs::AttentionTable t;
  t.first_length = std::floor(length_low);
  t.first_heads = std::floor(heads_low);
  t.rows = static_cast<int>(std::ceil(length_high) - t.first_length) + 1;
  t.columns = static_cast<int>(std::ceil(heads_high) - t.first_heads) + 1;
  t.correction.assign(static_cast<std::size_t>(t.rows) * static_cast<std::size_t>(t.columns), 0);
  return t;
}

// The four nodes around a point and their weights.
struct Corners {
  int node[4];
  double weight[4];
};

Corners corners(const costs::AttentionTable& t, const costs::AttentionShape& s) {
  const double y = std::log2(s.length) - t.first_length;
  const double x = std::log2(s.batch * s.heads) - t.first_heads;
  const int row = std::clamp(static_cast<int>(y), 0, std::max(0, t.rows - 2));
  const int column = std::clamp(static_cast<int>(x), 0, std::max(0, t.columns - 2));
  const int below = std::min(row + 1, t.rows - 1), right = std::min(column + 1, t.columns - 1);
  const double v = y - row, u = x - column;
  return {{row * t.columns + column, row * t.columns + right, below * t.columns + column,
           below * t.columns + right},
          {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u}};
}

Eigen::MatrixXd smoothness(const costs::AttentionTable& t) {
  const int n = t.rows * t.columns;
  Eigen::MatrixXd s = kPullToForm * Eigen::MatrixXd::Identity(n, n);
  const auto bend = [&](int middle, int step) {
    const int node[3] = {middle - step, middle, middle + step};
    const double factor[3] = {1, -2, 1};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) s(node[i], node[j]) += kSmoothness * factor[i] * factor[j];
  };
  for (int row = 0; row < t.rows; ++row)
    for (int column = 0; column < t.columns; ++column) {
      const int node = row * t.columns + column;
      if (row > 0 && row + 1 < t.rows) bend(node, t.columns);
      if (column > 0 && column + 1 < t.columns) bend(node, 1);
    }
  return s;
}

// Gauss-Newton: the correction acts on the busy part of the time only.
void fit_table(const std::vector<AttentionPoint>& points, const costs::Gpu& gpu, Model& model) {
  costs::AttentionTable& table = model.kernel.table;
  table = table_over(points);
  const Eigen::MatrixXd smooth = smoothness(table);
  for (int pass = 0; pass < kTablePasses; ++pass) {
    Eigen::MatrixXd normal = smooth;
    Eigen::VectorXd right = Eigen::VectorXd::Zero(normal.rows());
    for (const AttentionPoint& p : points) {
      const Seconds predicted = model.time(gpu, p.shape);
      const double busy = costs::attention_busy(model.kernel, gpu, p.shape) / predicted;
      const double error = -log_error(predicted, p.time);
      const double weight = std::min(1.0, kOutlier / std::max(std::abs(error), 1e-12));
      const Corners c = corners(table, p.shape);
      double target = error;
      for (int i = 0; i < 4; ++i)
        target += busy * c.weight[i] * table.correction[static_cast<std::size_t>(c.node[i])];
      for (int i = 0; i < 4; ++i) {
        right[c.node[i]] += weight * busy * c.weight[i] * target;
        for (int j = 0; j < 4; ++j)
          normal(c.node[i], c.node[j]) += weight * busy * busy * c.weight[i] * c.weight[j];
      }
    }
    const Eigen::VectorXd solved = normal.ldlt().solve(right);
    table.correction.assign(solved.begin(), solved.end());
  }
}

void fit_model(const std::vector<AttentionPoint>& points, const costs::Gpu& gpu, bool serving,
               Model& model) {
  fit_form(points, gpu, serving, model);
  fit_table(points, gpu, model);
}

// Of few points each is held out in turn, and none in the end.
costs::Provenance errors_of_few(const std::vector<AttentionPoint>& all, const costs::Gpu& gpu,
                                bool serving, const Model& start) {
  Errors errors;
  for (std::size_t out = 0; out < all.size(); ++out) {
    std::vector<AttentionPoint> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    Model model = start;
    fit_model(others, gpu, serving, model);
    errors.add(model.time(gpu, all[out].shape), all[out].time);
  }
  return errors.provenance(all.size());
}

// With the tiles of a GPU or a CPU's, whichever fits what was held out better.
Model fit_few(const std::vector<AttentionPoint>& all, const costs::Gpu& gpu, bool serving,
              Model model) {
  costs::Provenance provenance = errors_of_few(all, gpu, serving, model);
  Model small = model;
  small.kernel.tile = kSmallTile;
  const costs::Provenance other = errors_of_few(all, gpu, serving, small);
  if (other.median_error < provenance.median_error) model = small, provenance = other;
  fit_model(all, gpu, serving, model);
  model.kernel.provenance = provenance;
  return model;
}

costs::AttentionKernel fit_kernel(const std::vector<AttentionPoint>& all, const costs::Gpu& gpu,
                                  bool serving, costs::AttentionKernel kernel) {
  Model model{std::move(kernel), {}};
  if (all.size() < kFewAttentions) return fit_few(all, gpu, serving, model).kernel;
  std::vector<AttentionPoint> points, test;
  for (const AttentionPoint& p : all) (held_out(p.hash) ? test : points).push_back(p);
  fit_model(points, gpu, serving, model);
  Errors errors;
  for (const AttentionPoint& p : test) errors.add(model.time(gpu, p.shape), p.time);
  model.kernel.provenance = errors.provenance(all.size());
  return model.kernel;
}

}  // namespace

void fit_attention(const std::vector<AttentionMeasurement>& raw, const costs::Gpu& gpu,
                   costs::AttentionModel& model) {
  using Key = std::tuple<bool, bool, std::int64_t>;  // backward, causal, head dim
  std::map<Key, std::vector<AttentionPoint>> groups, serving;
  for (const AttentionMeasurement& a : raw) {
    const costs::Attention& k = a.kernel;
    const SequenceGroup& g = k.sequences.front();
    auto& group = (a.serving ? serving : groups)[{k.backward, k.causal, k.head_dim}];
    group.push_back(
        {{static_cast<double>(g.length), static_cast<double>(g.count), static_cast<double>(k.heads),
          static_cast<double>(k.kv_heads), static_cast<double>(k.head_dim), k.causal},
         a.time,
         shape_hash({g.length, g.count, k.heads, k.kv_heads})});
  }
  std::vector<costs::AttentionKernel> kernels;
  const auto fit_group = [&](const Key& key, const std::vector<AttentionPoint>& points,
                             bool served) {
    if (points.size() < kFewestAttentions) return;
    costs::AttentionKernel kernel;
    std::tie(kernel.backward, kernel.causal, kernel.head_dim) = key;
    kernels.push_back(fit_kernel(points, gpu, served, std::move(kernel)));
  };
  for (const auto& [key, points] : groups) fit_group(key, points, false);
  for (const auto& [key, points] : serving)  // the pure kernel is better evidence where it exists
    if (!groups.contains(key)) fit_group(key, points, true);
  const bool forward = std::any_of(kernels.begin(), kernels.end(),
                                   [](const costs::AttentionKernel& k) { return !k.backward; });
  if (forward) {
    model.kernels = std::move(kernels);
  } else {
    model.kernels.insert(model.kernels.end(), kernels.begin(), kernels.end());
  }
}

}  // namespace mllmsim::fit
