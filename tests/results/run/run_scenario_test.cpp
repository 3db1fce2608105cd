// What a scenario's run reports is the outcome of its job, with names.
#include "results/run/run_scenario.hpp"

#include <gtest/gtest.h>

#include "cost_models/calibration/calibration.hpp"

namespace mllmsim::results {
namespace {

void expect_same_figures(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.iteration, b.iteration);
  EXPECT_EQ(a.gpu_days, b.gpu_days);
  EXPECT_EQ(a.mfu, b.mfu);
  EXPECT_EQ(a.bubble_shares, b.bubble_shares);
  EXPECT_EQ(a.peak_memory, b.peak_memory);
  EXPECT_EQ(a.memory.size(), b.memory.size());
}

TEST(RunScenario, ReportsTheOutcomeOfItsJob) {
  const scenarios::Scenario scenario = scenarios::read_scenario("vit-3b-gpt-11b-a100x8");
  const RunResult run = run_scenario(scenario);
  expect_same_figures(run, simulate(scenario.job, costs::read_calibration(scenario.calibration)));
  EXPECT_EQ(run.name, "vit-3b-gpt-11b-a100x8");
  EXPECT_EQ(run.scenario_hash, scenario.hash);
  EXPECT_FALSE(run.calibration_hash.empty());
}

TEST(RunScenario, NeedsNoCalibrationForGivenTimes) {
  const scenarios::Scenario scenario = scenarios::read_scenario("given-times-1f1b");
  const RunResult run = run_scenario(scenario);
  expect_same_figures(run, simulate(scenario.job));
  EXPECT_EQ(run.calibration_hash, "");
}

// A plan with encoders beside the pipeline is simulated kernel by kernel, whatever the run says.
TEST(RunScenario, SaysWhatWasSimulated) {
  const scenarios::Scenario scenario = scenarios::read_scenario("vit-3b-gpt-11b-a100x8");
  EXPECT_EQ(described(scenario).granularity, Granularity::stage);
  EXPECT_EQ(run_scenario(scenario, {.timeline = false}).granularity, Granularity::kernel);
}

}  // namespace
}  // namespace mllmsim::results
