#include "strategies/run/simulate.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>

#include <chrono>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"
#include "strategies/registry/registry.hpp"
#include "strategies/run/job_costs.hpp"
#include "strategies/run/measure.hpp"

namespace mllmsim {
namespace {

run::ShownStep shown_step(const RunOptions& options) {
  return {options.timeline, options.critical_path};
}

// Steps are independent; each thread has cost memos of its own, so the order does not matter.
std::vector<run::MeasuredStep> measure_pass(const Job& job, const Plan& plan,
                                            const CostContext& costs, const run::ShownStep& shown) {
  const std::vector<std::int64_t> steps = plans::chosen_steps(job, *plan.pass);
  std::vector<run::MeasuredStep> measured(steps.size());
  tbb::enumerable_thread_specific<costs::LayerCosts> thread_layers(
      [&] { return run::layer_costs(job, costs.kernels); });
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, steps.size()),
                    [&](const tbb::blocked_range<std::size_t>& range) {
                      const CostContext own{costs.network, costs.kernels, thread_layers.local()};
                      Plan step_plan = plan;
                      for (std::size_t i = range.begin(); i < range.end(); ++i) {
                        step_plan.micro_batches =
                            plans::micro_batches_of(job, *plan.pass, steps[i]);
                        measured[i] = run::measure_step(job, step_plan, own, steps[i],
                                                        i == 0 ? shown : run::ShownStep{});
                      }
                    });
  return measured;
}

}  // namespace

Outcome simulate(const Job& job, const costs::Calibration& calibration, const RunOptions& options) {
  return simulate(job, *costs::kernel_costs(calibration, job.cluster), options);
}

Outcome simulate(const Job& job, const costs::KernelCosts& kernels, const RunOptions& options) {
  if (job.given_times) return simulate(job, options);
  const costs::ScaledCosts scaled(kernels, options.factors);
  run::JobCosts job_costs(job, scaled);
  const CostContext costs = job_costs.context();
  const auto started = std::chrono::steady_clock::now();
  const Plan plan = make_plan(job, costs);
  const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - started;
  const run::ShownStep shown = shown_step(options);
  std::vector<run::MeasuredStep> steps;
  if (plan.pass)
    steps = measure_pass(job, plan, costs, shown);
  else
    steps.push_back(run::measure_step(job, plan, costs, 0, shown));
  Outcome out = run::measure(job, plan, std::move(steps), kernels.peak());
  out.planning = Seconds{planning.count()};
  return out;
}

Outcome simulate(const Job& job, const RunOptions& options) {
  check(job.given_times.has_value(), "a job without given times needs a calibration");
  const Plan plan = plans::plan_of_given_times(job);
  std::vector<run::MeasuredStep> steps;
  steps.push_back(run::measure_given_step(job, plan, shown_step(options)));
  return run::measure(job, plan, std::move(steps));
}

}  // namespace mllmsim
