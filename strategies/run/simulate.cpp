#include "strategies/run/simulate.hpp"

#include <chrono>
#include <memory>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/calibration/calibration.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/kernels/scaled_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/progress.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/known_routes.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/registry/registry.hpp"
#include "strategies/run/job_costs.hpp"
#include "strategies/run/known_replays.hpp"
#include "strategies/run/measure.hpp"
#include "strategies/run/replay_ranks.hpp"
#include "strategies/run/simulate_with.hpp"

namespace mllmsim {
namespace {

run::ShownStep shown_step(const RunOptions& options) {
  return {options.timeline, options.critical_path};
}

// Steps are independent; each thread remembers costs and routes of its own, so their order does not
// matter.
std::vector<run::MeasuredStep> measure_pass(const Job& job, const Plan& plan,
                                            const CostContext& costs, const RunOptions& options) {
  const std::vector<std::int64_t> steps = plans::chosen_steps(job, *plan.pass);
  const run::ShownStep shown = shown_step(options);
  std::vector<run::MeasuredStep> measured(steps.size());
  if (options.progress) options.progress->begin(steps.size(), "steps");
  parallel_for(steps.size(), [&]() -> std::function<void(std::size_t)> {
    const auto layers = std::make_shared<costs::LayerCosts>(run::layer_costs(job, costs.kernels));
    const auto encoders = plan.encoders
                              ? std::make_shared<costs::LayerCosts>(
                                    lower::encoder_layer_costs(job, *plan.encoders, costs.kernels))
                              : nullptr;
    const auto routes = std::make_shared<lower::KnownRoutes>(costs.network);
    return [&, layers, encoders, routes, step_plan = plan](std::size_t i) mutable {
      const CostContext own{costs.network, *routes, costs.kernels,
                            *layers,       nullptr, encoders.get()};
      step_plan.micro_batches.resize(static_cast<std::size_t>(plan.pass->ranks));
      for (std::size_t r = 0; r < step_plan.micro_batches.size(); ++r)
        plans::make_micro_batches(job, *plan.pass, steps[i], r, step_plan.micro_batches[r]);
      measured[i] =
          run::measure_step(job, step_plan, own, steps[i], i == 0 ? shown : run::ShownStep{});
      if (options.progress) options.progress->done(true);
    };
  });
  return measured;
}

// The job with as many micro-batches as the plan has: packs may ask for another number.
Job as_planned(Job job, const Plan& plan) {
  Parallelism& p = job.parallelism;
  if (plan.pass)
    p.global_batch_size =
        plan.pass->micro_batches_per_rank * p.micro_batch_size * p.data_parallel_size;
  return job;
}

}  // namespace

Outcome run::simulate_with(CostContext costs, const Job& asked, const RunOptions& options,
                           KnownReplays* known) {
  costs.progress = options.progress;
  const auto started = std::chrono::steady_clock::now();
  const Plan plan = make_plan(asked, costs);
  const Job job = as_planned(asked, plan);
  const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - started;
  if (options.planned) options.planned(job, plan);
  std::vector<MeasuredStep> steps;
  if (plan.pass)
    steps = measure_pass(job, plan, costs, options);
  else
    steps.push_back(measure_step(job, plan, costs, 0, shown_step(options)));
  const auto replay = [&] { return replay_ranks(job, plan, costs.layers, steps); };
  const auto replayed = known ? known->of(job, plan, replay) : replay();
  Outcome out = measure(job, plan, std::move(steps),
                        costs.kernels.peak(job.software.precision.format), replayed);
  out.planning = Seconds{planning.count()};
  return out;
}

Outcome simulate(const Job& job, const costs::Calibration& calibration, const RunOptions& options) {
  return simulate(job, *costs::kernel_costs(calibration, job.cluster), options);
}

Outcome simulate(const Job& job, const costs::KernelCosts& kernels, const RunOptions& options) {
  if (job.given_times) return simulate(job, options);
  const costs::ScaledCosts scaled(kernels, options.factors);
  return run::simulate_with(run::JobCosts(job, scaled).context(), job, options);
}

Outcome simulate(const Job& job, const RunOptions& options) {
  check(job.given_times.has_value(), "a job without given times needs a calibration");
  const Plan plan = plans::plan_of_given_times(job);
  std::vector<run::MeasuredStep> steps;
  steps.push_back(run::measure_given_step(job, plan, shown_step(options)));
  return run::measure(job, plan, std::move(steps));
}

}  // namespace mllmsim
