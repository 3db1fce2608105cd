// How long the parts of a step's simulation take. Compare figures of one run with each other (ns
// per task, share of lowering), not across machines.
#include <benchmark/benchmark.h>

#include "sim/kernel/simulation.hpp"
#include "strategies/plans/partition.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
using namespace plans;
namespace {

Job pipeline(std::int64_t micro_batches) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = 8;
  job.parallelism.global_batch_size = micro_batches;
  job.given_times = GivenTimes{{Seconds{1e-3}}, {Seconds{2e-3}}, Seconds{1e-5}};
  return job;
}

void per_task(benchmark::State& state, std::size_t tasks) {
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["per_task"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void Lower(benchmark::State& state) {
  const Job job = pipeline(state.range(0));
  const Plan plan = plan_of_given_times(job);
  for (auto _ : state) benchmark::DoNotOptimize(lower::to_program(job, plan, *job.given_times));
  per_task(state, lower::to_program(job, plan, *job.given_times).tasks().size());
}
BENCHMARK(Lower)->RangeMultiplier(8)->Range(16, 8192);

void Simulate(benchmark::State& state) {
  const Job job = pipeline(state.range(0));
  const Program program = simulate_plan(job, plan_of_given_times(job)).program;
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, {}));
  per_task(state, program.tasks().size());
}
BENCHMARK(Simulate)->RangeMultiplier(8)->Range(16, 8192);

void Account(benchmark::State& state) {
  const Job job = pipeline(state.range(0));
  const SimulatedStep step = simulate_plan(job, plan_of_given_times(job));
  for (auto _ : state) benchmark::DoNotOptimize(step.device_times());
  per_task(state, step.program.tasks().size());
}
BENCHMARK(Account)->Arg(1024);

void KernelGranularityStep(benchmark::State& state) {
  Job job = small_job();
  job.granularity = Granularity::kernel;
  for (auto _ : state) benchmark::DoNotOptimize(simulate_job(job));
}
BENCHMARK(KernelGranularityStep)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mllmsim
