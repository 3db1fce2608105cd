#include "results/run/run_scenario.hpp"
#include "scenarios/files/input_files.hpp"

namespace mllmsim::results {
namespace {

RunResult result_of(const scenarios::Scenario& scenario, Outcome outcome) {
  RunResult out = described(scenario);
  static_cast<Outcome&>(out) = std::move(outcome);
  if (out.kernel_by_kernel) out.granularity = Granularity::kernel;
  if (!out.steps.empty()) out.micro_batches = out.steps.front().micro_batches;
  return out;
}

template <class Simulate>
RunResult simulated(const scenarios::Scenario& scenario, const Simulate& simulate) {
  try {
    return result_of(scenario, simulate());
  } catch (const UserError& e) {  // found while planning
    throw scenario.placed(e);
  }
}

}  // namespace

RunResult described(const scenarios::Scenario& scenario) {
  const Job& job = scenario.job;
  const Parallelism& p = job.parallelism;
  RunResult out;
  out.name = job.name;
  out.strategy = job.strategy;
  out.model = job.model.name;
  out.cluster = job.cluster.name;
  out.scenario_text = scenario.text;
  out.scenario_hash = scenario.hash;
  out.work = scenario.work;
  out.seed = job.seed;
  out.granularity = job.granularity;
  out.gpus = p.world_size();
  out.tp = p.tensor_model_parallel_size;
  out.pp = p.pipeline_model_parallel_size;
  out.vpp = p.virtual_pipeline_stages;
  out.cp = p.context_parallel_size;
  out.dp = p.data_parallel_size;
  out.zero_stage = p.zero_stage;
  out.micro_batch_size = p.micro_batch_size;
  out.global_batch_size = p.global_batch_size;
  out.micro_batches = p.micro_batches();
  return out;
}

RunResult run_scenario(const scenarios::Scenario& scenario, const RunOptions& options) {
  scenarios::InputFiles files;
  return run_scenario(scenario, files, options);
}

RunResult run_scenario(const scenarios::Scenario& scenario, scenarios::InputFiles& files,
                       const RunOptions& options) {
  Simulators simulators;
  return run_scenario(scenario, files, simulators, options);
}

RunResult run_scenario(const scenarios::Scenario& scenario, scenarios::InputFiles& files,
                       Simulators& simulators, const RunOptions& options) {
  if (scenario.job.given_times) return result_of(scenario, simulate(scenario.job, options));
  RunResult out = simulated(scenario, [&] {
    return simulators.of(files.calibration(scenario.calibration)).simulate(scenario.job, options);
  });
  out.calibration_hash = files.calibration_hash(scenario.calibration);
  out.data_hash = files.data_hash(scenario.job.data.set);
  return out;
}

RunResult run_scenario(const scenarios::Scenario& scenario, const costs::Calibration& calibration,
                       const RunOptions& options) {
  return simulated(scenario, [&] { return simulate(scenario.job, calibration, options); });
}

}  // namespace mllmsim::results
