#include "cost_models/calibrate/measure.hpp"

#include <gtest/gtest.h>

#include "tests/cost_models/calibrate/fake_backend.hpp"

namespace mllmsim::calibrate {
using namespace costs;
namespace {

const Task kTask = LaunchTask{};

// Sorted 1 2 3 4 100: median 3, quartiles 2 and 4, so the outlier does not count.
TEST(Statistics, MedianAndSpreadIgnoreAnOutlier) {
  const Summary s = summarise({100, 2, 1, 4, 3});
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.spread, 2.0 / 3);
  EXPECT_EQ(s.samples, 5);
}

TEST(Statistics, OneSampleHasNoSpread) {
  const Summary s = summarise({7});
  EXPECT_DOUBLE_EQ(s.median, 7);
  EXPECT_DOUBLE_EQ(s.spread, 0);
}

// Four times the samples, half the error.
TEST(Statistics, ErrorFallsWithTheRootOfTheSamples) {
  EXPECT_DOUBLE_EQ((Summary{1, 0.1, 100}.error()), (Summary{1, 0.1, 25}.error()) / 2);
}

// Equal durations: known after enough_samples. Warm-up 4, then runs of 1 s / 16 / 0.01 s = 6.
TEST(Measure, StopsOnceTheMedianIsKnown) {
  FakeBackend backend({0.01});
  const auto prepared = backend.prepare(kTask);
  const Summary s = measure(*prepared, Mode::burst, {1.0, 0.002, 10}, backend.clock());
  EXPECT_EQ(s.samples, 12);
  EXPECT_EQ(backend.repetitions, 16);
  EXPECT_DOUBLE_EQ(s.median, 0.01);
}

// Durations that never settle: the budget of 1 s ends it, after 2 * 0.02 s for the estimate.
TEST(Measure, StopsWhenTheBudgetIsSpent) {
  FakeBackend backend({0.01, 0.03});
  const auto prepared = backend.prepare(kTask);
  const Summary s = measure(*prepared, Mode::burst, {1.0, 1e-6, 10}, backend.clock());
  EXPECT_GE(s.samples, 48);
  EXPECT_LE(s.samples, 52);
}

TEST(Measure, TakesAFewSamplesOfWhatIsLongerThanTheBudget) {
  FakeBackend backend({5.0});
  const auto prepared = backend.prepare(kTask);
  const Summary s = measure(*prepared, Mode::burst, {1.0, 0.002, 10}, backend.clock());
  EXPECT_EQ(s.samples, kFewest);
}

// The clock drops: 100 repetitions at 10 ms, then 20 ms. Two seconds in all; only the second half
// counts, when the GPU is hot.
TEST(Measure, SustainedCountsTheSecondHalf) {
  std::vector<double> durations(100, 0.01);
  durations.resize(1000, 0.02);
  FakeBackend backend(durations);
  const auto prepared = backend.prepare(kTask);
  const Summary s = measure(*prepared, Mode::sustained, {2.0, 0.002, 10}, backend.clock());
  EXPECT_DOUBLE_EQ(s.median, 0.02);
}

}  // namespace
}  // namespace mllmsim::calibrate
