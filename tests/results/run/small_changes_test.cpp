// A plan is no cliff: if any input of a shipped run changes by 1 %, its step changes by at most
// 2 %.
//
// Inputs are the times of each kind of kernel, bandwidths, how much GPUs differ and what the CPU
// takes. A strategy plans anew for each, so that this holds for its choices too: cuts, recompute
// and places in bubbles. Large runs take the strategies that plan quickly.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "results/run/run_scenario.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "scenarios/read/scenario.hpp"

namespace mllmsim::results {
namespace {

struct Change {
  const char* name;
  std::function<void(Job&, costs::CostFactors&, double)> make;
};

const std::vector<Change>& changes() {
  using Factors = costs::CostFactors;
  static const std::vector<Change> all = {
      {"gemm", [](Job&, Factors& f, double by) { f.gemm *= by; }},
      {"attention", [](Job&, Factors& f, double by) { f.attention *= by; }},
      {"memory bound", [](Job&, Factors& f, double by) { f.memory_bound *= by; }},
      {"collectives in a node", [](Job&, Factors& f, double by) { f.collectives_in_node *= by; }},
      {"collectives across nodes",
       [](Job&, Factors& f, double by) { f.collectives_across_nodes *= by; }},
      {"point to point", [](Job&, Factors& f, double by) { f.point_to_point *= by; }},
      {"NVLink", [](Job& j, Factors&,
                    double by) { j.cluster.nvlink_bandwidth = j.cluster.nvlink_bandwidth * by; }},
      {"NICs",
       [](Job& j, Factors&, double by) { j.cluster.nic_bandwidth = j.cluster.nic_bandwidth * by; }},
      {"spread of GPUs", [](Job& j, Factors&, double by) { j.cluster.gpu_speed_spread *= by; }},
      {"time per kernel",
       [](Job& j, Factors&, double by) {
         j.software.host_time_per_kernel = j.software.host_time_per_kernel * by;
       }},
      {"time per pass",
       [](Job& j, Factors&, double by) {
         j.software.host_time_per_pass = j.software.host_time_per_pass * by;
       }},
  };
  return all;
}

constexpr double kLimit = 0.02;
constexpr int kManyGpus = 64;
constexpr const char* kFewSteps = "data.steps=2";  // of a data set

std::set<std::string> strategies_for(const Job& job) {
  std::set<std::string> out = {job.strategy};
  if (job.parallelism.pipeline_model_parallel_size == 1) return out;
  out.insert("balanced");
  if (job.model.encoders.empty() || job.cluster.gpus() > kManyGpus) return out;
  out.insert(job.data.set ? "omnibal" : "optimus");
  return out;
}

TEST(SmallChanges, MoveNoShippedRunByMuch) {
  scenarios::InputFiles files;
  for (const scenarios::ShippedFile& file : scenarios::shipped_runs()) {
    scenarios::Scenario own = scenarios::read_scenario(file.path, {}, &files);
    if (own.job.given_times) continue;
    for (const std::string& strategy : strategies_for(own.job)) {
      std::vector<std::string> overrides;
      if (strategy != own.job.strategy) overrides.push_back("strategy.name=" + strategy);
      if (own.job.data.set) overrides.emplace_back(kFewSteps);
      const scenarios::Scenario scenario = scenarios::read_scenario(file.path, overrides, &files);
      const RunOptions plain{.timeline = false};
      const double before = run_scenario(scenario, files, plain).iteration.value;
      for (const Change& change : changes()) {
        scenarios::Scenario changed = scenario;
        RunOptions options = plain;
        change.make(changed.job, options.factors, 1.01);
        const double after = run_scenario(changed, files, options).iteration.value;
        EXPECT_LE(std::abs(after / before - 1), kLimit)
            << file.name << ", " << strategy << ": 1 % of " << change.name << " moves " << before
            << " s to " << after << " s";
      }
    }
  }
}

}  // namespace
}  // namespace mllmsim::results
