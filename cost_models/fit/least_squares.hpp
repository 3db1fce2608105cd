// Levenberg-Marquardt with Huber weights and forward-difference derivatives, for fits of a few tens
// of parameters to a few thousand points. Deterministic.
//
//   minimise  sum_i huber(r_i(x)),   huber quadratic below `outlier`, linear above
//
// Models are fitted to log time, so r_i is close to a relative error and `outlier` is one too.
// Parameters should be logarithms of positive quantities: then steps are relative and signs hold.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace mllmsim::fit {

using Residuals = std::function<Eigen::VectorXd(const Eigen::VectorXd& x)>;

struct LeastSquaresOptions {
  int iterations = 60;
  double outlier = 0.05;
  double difference = 1e-4;  // step of the derivatives; above the kinks of tile counts
  double tolerance = 1e-5;   // stop when the objective falls by less, relatively
};

Eigen::VectorXd minimise(const Residuals& residuals, Eigen::VectorXd start,
                         const LeastSquaresOptions& options = {});

}  // namespace mllmsim::fit
