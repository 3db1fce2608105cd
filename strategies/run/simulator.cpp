#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/kernels/scaled_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/lower/known_routes.hpp"
#include "strategies/run/known_replays.hpp"
#include "strategies/run/simulate.hpp"
#include "strategies/run/simulate_with.hpp"

namespace mllmsim {

// What jobs with equal parts share. Owns those parts: costs refer to them.
struct Simulator::Known {
  Known(const Job& job, const costs::Calibration& calibration, const costs::CostFactors& of)
      : model(job.model),
        cluster(job.cluster),
        software(job.software),
        parallelism(costs::LayerCosts::known_by(job.parallelism, job.software)),
        factors(of),
        kernels(costs::kernel_costs(calibration, cluster)),
        scaled(*kernels, factors),
        network(cluster),
        routes(network),
        layers(model, parallelism, software, scaled, cluster) {}

  bool serves(const Job& job, const costs::CostFactors& of) const {
    return parallelism == costs::LayerCosts::known_by(job.parallelism, job.software) &&
           factors == of && cluster == job.cluster && software == job.software &&
           model == job.model;
  }

  Model model;
  ClusterSpec cluster;
  Software software;
  Parallelism parallelism;
  costs::CostFactors factors;
  std::unique_ptr<costs::KernelCosts> kernels;
  costs::ScaledCosts scaled;
  Network network;
  lower::KnownRoutes routes;
  costs::LayerCosts layers;
  run::KnownReplays replays;
};

Simulator::Simulator(const costs::Calibration& calibration) : calibration_(calibration) {}
Simulator::~Simulator() = default;

Outcome Simulator::simulate(const Job& job, const RunOptions& options) {
  if (job.given_times) return mllmsim::simulate(job, options);
  if (!known_ || !known_->serves(job, options.factors))
    known_ = std::make_unique<Known>(job, calibration_, options.factors);
  return run::simulate_with({known_->network, known_->routes, known_->scaled, known_->layers}, job,
                            options, &known_->replays);
}

}  // namespace mllmsim
