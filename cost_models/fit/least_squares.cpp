#include "cost_models/fit/least_squares.hpp"

#include <Eigen/Cholesky>
#include <cmath>

namespace mllmsim::fit {
namespace {

double objective(const Eigen::VectorXd& r, double outlier) {
  double sum = 0;
  for (const double v : r) {
    const double a = std::abs(v);
    sum += a <= outlier ? 0.5 * a * a : outlier * (a - 0.5 * outlier);
  }
  return sum;
}

Eigen::MatrixXd jacobian(const Residuals& residuals, const Eigen::VectorXd& x,
                         const Eigen::VectorXd& r, double difference) {
  Eigen::MatrixXd j(r.size(), x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    Eigen::VectorXd moved = x;
    moved[i] += difference;
    j.col(i) = (residuals(moved) - r) / difference;
  }
  return j;
}

}  // namespace

Eigen::VectorXd minimise(const Residuals& residuals, Eigen::VectorXd start,
                         const LeastSquaresOptions& options) {
  Eigen::VectorXd x = std::move(start);
  Eigen::VectorXd r = residuals(x);
  double best = objective(r, options.outlier);
  double damping = 1e-2;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const Eigen::MatrixXd j = jacobian(residuals, x, r, options.difference);
    const Eigen::VectorXd weight = r.unaryExpr([&](double v) {
      return std::abs(v) <= options.outlier ? 1.0 : options.outlier / std::abs(v);
    });
    const Eigen::MatrixXd normal = j.transpose() * weight.asDiagonal() * j;
    const Eigen::VectorXd gradient = j.transpose() * weight.cwiseProduct(r);
    bool better = false;
    for (int attempt = 0; attempt < 10 && !better; ++attempt) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal();
      damped.diagonal().array() += 1e-12;
      const Eigen::VectorXd candidate = x - damped.ldlt().solve(gradient);
      const Eigen::VectorXd there = residuals(candidate);
      const double value = objective(there, options.outlier);
      better = std::isfinite(value) && value < best;
      if (!better) {
        damping *= 4;
        continue;
      }
      const bool converged = best - value < options.tolerance * best;
      x = candidate;
      r = there;
      best = value;
      damping = std::max(damping / 5, 1e-9);
      if (converged) return x;
    }
    if (!better) return x;
  }
  return x;
}

}  // namespace mllmsim::fit
