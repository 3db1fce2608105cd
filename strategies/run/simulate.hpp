// The door: simulates a job and says what came of it.
//
//   job + calibration -> costs -> strategy's plan -> tasks of each step -> simulation -> Outcome
//
// One step stands for all if all samples are alike; otherwise the chosen steps of a pass over the
// data set are simulated on every core. Same job, same calibration: same outcome, to the bit, on
// any number of threads (Outcome::planning aside). Throws UserError if the strategy cannot plan the
// job.
#pragma once

#include <functional>
#include <memory>

#include "cost_models/kernels/kernel_costs.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/run/outcome.hpp"

namespace mllmsim::costs {
struct Calibration;
}

namespace mllmsim {

class Progress;

struct RunOptions {
  bool timeline = true;  // spans and memory of a step, most of what an outcome holds
  bool critical_path = false;
  costs::CostFactors factors{};  // some kernels take longer than the costs say
  // Told of the plan before anything is simulated.
  std::function<void(const Job&, const Plan&)> planned{};
  Progress* progress = nullptr;  // told how far a long plan is, then how many steps are done
};

Outcome simulate(const Job& job, const costs::Calibration& calibration,
                 const RunOptions& options = {});

// With kernel times of one's own. They are asked from several threads.
Outcome simulate(const Job& job, const costs::KernelCosts& kernels, const RunOptions& options = {});

// A job whose times are given: there are no kernels to cost.
Outcome simulate(const Job& job, const RunOptions& options = {});

// Many jobs, one after another, as a sweep or a planner asks for. What one job has in common with
// the one before is not computed again: costs of layers, the network and routes, as long as model,
// cluster, software and parallel sizes stay (batch sizes may change), and what the allocator makes
// of a plan that was replayed before. Outcomes are those of simulate(). Not for concurrent use.
class Simulator {
 public:
  explicit Simulator(const costs::Calibration& calibration);  // which must outlive it
  ~Simulator();
  Outcome simulate(const Job& job, const RunOptions& options = {});

 private:
  struct Known;
  const costs::Calibration& calibration_;
  std::unique_ptr<Known> known_;
};

}  // namespace mllmsim
