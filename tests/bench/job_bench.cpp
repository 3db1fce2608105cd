// Whole jobs in process, on one core: a step, a point of a sweep, a pass over a data set, planning.
// What is measured starts after the files were read, but for Point_Resolved, which reads them from
// memory as a sweep does.
#include <benchmark/benchmark.h>

#include "results/sweep/run_sweep.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/parallel.hpp"
#include "strategies/run/simulate.hpp"
#include "tests/bench/bench.hpp"

namespace mllmsim {
namespace {

using Overrides = std::vector<std::string>;

// A shipped run with changes, ready to simulate.
class BenchJob {
 public:
  BenchJob(const std::string& run, const Overrides& overrides)
      : scenario_(scenarios::read_scenario(run, overrides)),
        calibration_(costs::read_calibration(scenario_.calibration)) {}
  Outcome simulate() const {
    return mllmsim::simulate(scenario_.job, calibration_, {.timeline = false});
  }

 private:
  scenarios::Scenario scenario_;
  costs::Calibration calibration_;
};

void simulated(benchmark::State& state, const std::string& run, const Overrides& overrides) {
  const ThreadLimit one_core(1);
  const BenchJob job(run, overrides);
  Seconds planning{};
  std::int64_t steps = 0;
  for (auto _ : state) {
    const Outcome outcome = job.simulate();
    planning += outcome.planning;
    steps += outcome.simulated_steps;
  }
  state.counters["planning_s"] =
      benchmark::Counter(planning.value, benchmark::Counter::kAvgIterations);
  state.counters["steps"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kAvgIterations);
}

void job(const char* name, const std::string& run, const Overrides& overrides) {
  benchmark::RegisterBenchmark(name, simulated, run, overrides)->Unit(benchmark::kMillisecond);
}

void growth(const char* name, const std::string& run, const Overrides& overrides,
            const std::vector<std::int64_t>& sizes,
            const std::function<Overrides(std::int64_t)>& sized) {
  for (const std::int64_t size : sizes) {
    Overrides all = overrides;
    const Overrides own = sized(size);
    all.insert(all.end(), own.begin(), own.end());
    benchmark::RegisterBenchmark((std::string(name) + "/" + std::to_string(size)).c_str(),
                                 [=](benchmark::State& state) {
                                   simulated(state, run, all);
                                   bench::size_is(state, static_cast<std::size_t>(size));
                                 })
        ->Unit(benchmark::kMillisecond);
  }
}

// As a sweep runs a point: resolved from files already read, simulated, nothing kept.
void Point_Resolved(benchmark::State& state) {
  const ThreadLimit one_core(1);
  scenarios::InputFiles files;
  const auto file = scenarios::run_file("internvl-6b-20b-a100x32");
  std::int64_t point = 0;
  for (auto _ : state) {
    const std::string batch = std::to_string(64 * (1 + point++ % 8));
    const auto scenario =
        scenarios::read_scenario(file, {"parallelism.global_batch_size=" + batch}, &files);
    benchmark::DoNotOptimize(sweep::simulated_point(scenario, files));
  }
}
BENCHMARK(Point_Resolved)->Unit(benchmark::kMicrosecond);

std::string text(std::int64_t n) { return std::to_string(n); }

const bool kRegistered = [] {
  const std::string gpt3 = "gpt3-175b-a100x1024", internvl = "internvl-1.2m-a100x32";
  job("Step_Gpt3_1024", gpt3, {});
  job("Step_Gpt3_65536", gpt3, {"cluster.nodes=8192", "gbs=98304"});
  for (const std::int64_t over : {1, 4, 32})
    job(("Step_Contended_24576/" + text(over)).c_str(), internvl,
        {"strategy.name=baseline", "cluster.nodes=3072", "cluster.nic_bandwidth=\"100 Gb/s\"",
         "cluster.oversubscription=" + text(over), "tp=1", "pp=8", "gbs=98304", "data.steps=1",
         "parallelism.use_tp_pp_dp_mapping=false"});
  job("Step_Huge_100000", gpt3, {"cluster.nodes=12544", "pp=64", "vpp=1", "gbs=802816"});
  for (const std::string strategy : {"baseline", "omnibal", "optimus", "omnibal+optimus"})
    job(("Pass_" + strategy).c_str(), internvl, {"strategy.name=" + strategy});
  for (const std::int64_t gpus : {1536, 3072})
    job(("Planning_Optimus_" + text(gpus)).c_str(), "vit-22b-gpt-175b-h100x" + text(gpus), {});
  job("Planning_Optimus_2048", "vit-22b-gpt-175b-h100x1536", {"cluster.nodes=256", "gbs=2048"});
  job("Planning_Omnibal_32768", "vit-22b-gpt-175b-h100x3072",
      {"strategy.name=omnibal", "cluster.nodes=4096", "gbs=32768"});
  growth("Growth_Gpus", gpt3, {}, {1024, 4096, 16384, 65536}, [](std::int64_t gpus) {
    return Overrides{"cluster.nodes=" + text(gpus / 8), "gbs=" + text(gpus * 3 / 2)};
  });
  growth("Growth_Replicas", internvl, {"data.steps=2", "strategy.name=baseline"}, {4, 8, 16, 32},
         [](std::int64_t dp) {
           return Overrides{"cluster.nodes=" + text(dp), "gbs=" + text(128 * dp)};
         });
  growth("Growth_OptimusMicroBatches", "internvl-6b-20b-a100x32",
         {"strategy.name=optimus", "mbs=1", "tp=8", "pp=2"}, {39, 156, 624, 2500},
         [](std::int64_t micro_batches) { return Overrides{"gbs=" + text(2 * micro_batches)}; });
  growth(
      "Growth_OptimusLayers", "internvl-6b-20b-a100x32",
      {"strategy.name=optimus", "gbs=64", "cluster.gpu_memory=\"100 TB\""}, {156, 625, 2500, 10000},
      [](std::int64_t layers) { return Overrides{"model.llm.num_hidden_layers=" + text(layers)}; });
  return true;
}();

}  // namespace
}  // namespace mllmsim
