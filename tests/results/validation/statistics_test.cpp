#include "results/validation/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "results/validation/run_metric.hpp"
#include "results/validation/validation.hpp"
#include "tests/results/example_run.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace results;
using namespace scenarios;
using namespace tables;
using namespace validation;
namespace {

// Ranks 1 2 3 4 against 1 3 2 4: sum of squared differences 2, 1 - 6 * 2 / (4 * 15) = 0.8.
TEST(Statistics, RankCorrelationByHand) {
  const std::vector<double> a = {10, 20, 30, 40}, b = {1, 3, 2, 9};
  EXPECT_DOUBLE_EQ(*rank_correlation(a, b), 0.8);
  EXPECT_DOUBLE_EQ(*rank_correlation(a, a), 1);
  const std::vector<double> falling = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(*rank_correlation(a, falling), -1);
}

// Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5.
TEST(Statistics, TiesShareTheirMeanRank) {
  const std::vector<double> a = {1, 2, 2, 3}, b = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(*rank_correlation(a, b), 4.5 / std::sqrt(4.5 * 5));
}

TEST(Statistics, NoRankWithoutOrder) {
  const std::vector<double> two = {1, 2}, equal = {1, 1, 1}, three = {1, 2, 3};
  EXPECT_FALSE(rank_correlation(two, two));
  EXPECT_FALSE(rank_correlation(equal, three));
}

TEST(Statistics, ErrorsBySizeAndBiasBySign) {
  const std::vector<double> errors = {-0.1, 0.2, -0.3};
  const ErrorStatistics s = error_statistics(errors);
  EXPECT_EQ(s.rows, 3u);
  EXPECT_DOUBLE_EQ(s.median, 0.2);
  EXPECT_DOUBLE_EQ(s.mean, 0.2);
  EXPECT_NEAR(s.bias, -0.2 / 3, 1e-15);
  EXPECT_DOUBLE_EQ(s.largest, 0.3);
}

TEST(RunMetric, ColumnsOfRunsAndStages) {
  const RunResult run = example_run();
  EXPECT_EQ(run_metric(run, "iteration_s"), run.iteration.value);
  EXPECT_EQ(run_metric(run, "fits"), 1);
  EXPECT_EQ(run_metric(run, "stages.1.forward_s"), run.stages[1].forward.value);
  EXPECT_EQ(run_metric(run, "stages.max.peak_memory_bytes"),
            static_cast<double>(run.stages[0].peak_memory.value));
  EXPECT_EQ(run_metric(run, "stages.0.free_memory_bytes"),
            static_cast<double>((run.gpu_memory - run.stages[0].peak_memory).value));
  EXPECT_FALSE(run_metric(run, "stages.7.forward_s"));
}

TEST(RunMetric, WrongNamesAreExplained) {
  EXPECT_EQ(metric_problem("iteration_s"), "");
  EXPECT_EQ(metric_problem("stages.0.forward_s"), "");
  EXPECT_EQ(metric_problem("iteration_ss"),
            "no such column of numbers; did you mean \"iteration_s\"?");
  EXPECT_EQ(metric_problem("reason"), "no such column of numbers");  // text
  EXPECT_EQ(metric_problem("stages.first.forward_s"),
            "expected a stage's number, last, max, min or sum, found \"first\"");
}

// A yes-or-no figure is right or wrong and no part of the errors; a measured run must fit.
TEST(Validation, FlagsAndMisfitsAreKeptApart) {
  Validation v;
  v.rows = {{"a", "s", "iteration_s", 1.1, 1, 0.1, "f", "", "", false, false},
            {"b", "s", "fits", 0, 0, 0, "f", "", "", false, true}};
  const SourceSummary s = summarise(v, "s");
  EXPECT_EQ(s.errors.rows, 1u);
  EXPECT_EQ(s.flags, 1u);
  EXPECT_EQ(s.right, 1u);
  EXPECT_EQ(s.misfits, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace mllmsim
