// Pipelines with given chunk times: the schedule alone, no cost model.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "strategies/plans/partition.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
using namespace plans;
namespace {

struct Result {
  Time step;
  std::vector<DeviceTime> devices;
};

// Times in nanoseconds.
Result run(int p, int v, int m, double f, double b, double comm = 0) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = p;
  job.parallelism.virtual_pipeline_stages = v;
  job.parallelism.global_batch_size = m;
  job.given_times = GivenTimes{{Seconds{f * 1e-9}}, {Seconds{b * 1e-9}}, Seconds{comm * 1e-9}};
  const SimulatedStep step = simulate_plan(job, plan_of_given_times(job));
  return {step.span(), step.device_times()};
}

TEST(Pipeline, OneForwardOneBackwardTakesMicroBatchesPlusFill) {
  EXPECT_TRUE(rc::check([] {
    const int p = *rc::gen::inRange(1, 17), m = *rc::gen::inRange(1, 40);
    const int f = *rc::gen::inRange(1, 1000), b = *rc::gen::inRange(1, 1000);
    if (m < p) return;  // the formula assumes a filled pipeline
    RC_ASSERT(run(p, 1, m, f, b).step == Time{(m + p - 1LL) * (f + b)});
  }));
}

TEST(Pipeline, InterleavingDividesTheFillByTheChunks) {
  EXPECT_TRUE(rc::check([] {
    const int p = *rc::gen::inRange(2, 9), v = *rc::gen::inRange(2, 7);
    const int m = p * *rc::gen::inRange(1, 5);
    const int f = *rc::gen::inRange(1, 1000), b = *rc::gen::inRange(1, 1000);
    // m(f + b) + (p - 1)(f + b)/v with a chunk's f and b being 1/v of the stage's.
    RC_ASSERT(run(p, v, m, f, b).step == Time{(1LL * m * v + p - 1) * (f + b)});
  }));
}

// Rank r starts after r forwards (warm-up), ends r backwards early (cool-down), and waits
// (p - 1 - r)(f + b) between.
TEST(Pipeline, BubblesOfEqualStagesAreWhereTheTextbookHasThem) {
  const std::int64_t p = 4, f = 3, b = 5;
  const Result r = run(4, 1, 8, f, b);
  for (std::int64_t rank = 0; rank < p; ++rank) {
    const Bubbles& bubbles = r.devices[static_cast<std::size_t>(rank)].bubbles;
    EXPECT_EQ(bubbles[BubbleKind::pp_warmup], Time{rank * f});
    EXPECT_EQ(bubbles[BubbleKind::pp_cooldown], Time{rank * b});
    EXPECT_EQ(bubbles[BubbleKind::pp_other], Time{(p - 1 - rank) * (f + b)});
    EXPECT_EQ(r.devices[static_cast<std::size_t>(rank)].busy, Time{8 * (f + b)});
  }
}

// Qi et al., ICLR 2024, Tables 4 and 5: measured chunk times (us) and bubble rates of 1F1B and
// interleaved 1F1B. Input-gradient + weight-gradient time is our backward;
//   rate = 1 - m(F + B)/step.
// For the interleaved rows embedding and head count as layers, so that a device has
// (layers + 2)/p = 3 chunks.
struct ZeroBubbleRow {
  int p, m;
  double forward, backward, comm;
  double rate, interleaved_rate;
};
constexpr ZeroBubbleRow kZeroBubble[] = {
    {8, 24, 18522, 18086 + 9337, 601, 0.2431, 0.1055},
    {8, 32, 18513, 18086 + 9331, 626, 0.1985, 0.0818},
    {8, 64, 18546, 18097 + 9321, 762, 0.1240, 0.0443},
    {16, 48, 11347, 11248 + 8132, 377, 0.2552, 0.1104},
    {16, 64, 11307, 11254 + 8101, 379, 0.2082, 0.0852},
    {16, 128, 11325, 11308 + 8109, 378, 0.1251, 0.0445},
};

double bubble_rate(const ZeroBubbleRow& row, int v) {
  const Result r =
      run(row.p, v, row.m, row.forward * 1e3 / v, row.backward * 1e3 / v, row.comm * 1e3);
  return 1 - row.m * (row.forward + row.backward) * 1e3 / static_cast<double>(r.step.value);
}

TEST(Pipeline, OneForwardOneBackwardHasTheMeasuredBubbleRates) {
  for (const ZeroBubbleRow& row : kZeroBubble)
    EXPECT_NEAR(bubble_rate(row, 1), row.rate, 0.0005) << "p " << row.p << " m " << row.m;
}

TEST(Pipeline, InterleavedHasTheMeasuredBubbleRates) {
  for (const ZeroBubbleRow& row : kZeroBubble)
    EXPECT_NEAR(bubble_rate(row, 3), row.interleaved_rate, 0.01) << "p " << row.p << " m " << row.m;
}

}  // namespace
}  // namespace mllmsim
