// Steps replayed through the allocator: uniform ones reserve what they allocate, varied ones more.
#include "strategies/step/replay.hpp"

#include <gtest/gtest.h>

#include "strategies/run/simulate.hpp"
#include "strategies/step/plan_memory.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {
namespace {

using step::RankReplay;

struct Replayed {
  explicit Replayed(Job asked)
      : job(with_defaults(std::move(asked))), costs(job), plan(make_plan(job, costs.context())) {}
  static Job with_defaults(Job job) {
    use_defaults(job);
    return job;
  }

  RankReplay rank(int r) { return {job, plan, costs.context().layers, r}; }
  std::vector<MicroBatch> micro_batches(const std::vector<std::int64_t>& tokens) const {
    std::vector<MicroBatch> out;
    for (const std::int64_t n : tokens) {
      MicroBatch mb = plan.micro_batches.front().front();
      mb.llm.groups = {{n, 1}};
      out.push_back(mb);
    }
    return out;
  }

  Job job;
  JobCosts costs;
  Plan plan;
};

// Every step alike: the second finds the blocks that the first gave back, and all that is left is
// what is held all step long.
TEST(RankReplay, EqualStepsReserveOnce) {
  Replayed r(small_job());
  RankReplay replay = r.rank(0);
  const Bytes held = replay.allocator().allocated();
  ASSERT_TRUE(replay.step(0, r.plan.micro_batches.front()));
  const Bytes reserved = replay.allocator().reserved();
  ASSERT_TRUE(replay.step(1, r.plan.micro_batches.front()));
  EXPECT_EQ(replay.allocator().reserved(), reserved);
  EXPECT_EQ(replay.allocator().allocated(), held);
  EXPECT_GE(held, step::rank_state(r.job, r.plan, 0).held.allocated());
}

// Growing sequences do not fit the blocks of shorter ones; an expandable segment grows with them.
TEST(RankReplay, VaryingShapesReserveMoreUnlessSegmentsExpand) {
  const auto unused = [](bool expandable) {
    Job job = small_job();
    job.model.encoders.clear();
    job.software.memory.allocator.expandable_segments = expandable;
    Replayed r(job);
    RankReplay replay = r.rank(0);
    for (std::int64_t step = 0; step < 40; ++step) {
      const std::int64_t n = 2048 + 200 * step;
      EXPECT_TRUE(replay.step(step, r.micro_batches(std::vector<std::int64_t>(8, n))));
    }
    return replay.allocator().peak_reserved() - replay.allocator().peak_allocated();
  };
  EXPECT_LT(unused(true) * 2, unused(false));
}

// With little more than what is held, the first forward that is too large says so.
TEST(RankReplay, SaysWhichMicroBatchIsTooLarge) {
  Job job = small_job();
  Replayed probe(job);
  const Bytes held = step::rank_state(job, probe.plan, 3).held.total();  // the LLM's last layers
  job.cluster.gpu_memory = held + Bytes{2LL << 30};
  Replayed r(job);
  RankReplay replay = r.rank(3);
  EXPECT_TRUE(replay.step(0, r.micro_batches({512, 512})));
  EXPECT_FALSE(replay.step(1, r.micro_batches({512, 1 << 22})));
  ASSERT_TRUE(replay.ran_out());
  EXPECT_EQ(replay.ran_out()->step, 1);
  EXPECT_FALSE(replay.step(2, r.micro_batches({512})));  // it is over
}

// What a run reports is the replay's: reserved, never less than allocated, and who runs out.
TEST(Simulate, FitsIfTheAllocatorGetsThrough) {
  Job job = small_job();
  JobCosts costs(job);
  const Outcome roomy = simulate(job, *costs.kernels, {.timeline = false});
  EXPECT_TRUE(roomy.fits);
  for (const StageFigures& s : roomy.stages) {
    EXPECT_GE(s.peak_reserved, s.peak_allocated);
    EXPECT_EQ(s.allocator_retries, 0);
    EXPECT_LE(s.peak_memory_p50, s.peak_memory_p99);
    EXPECT_LE(s.peak_memory_p99, s.peak_memory);
  }
  job.cluster.gpu_memory = scaled(roomy.peak_memory, 0.5);
  const Outcome tight = simulate(job, *costs.kernels, {.timeline = false});
  EXPECT_FALSE(tight.fits);
  EXPECT_NE(tight.reason.find("runs out "), std::string::npos) << tight.reason;
}

}  // namespace
}  // namespace mllmsim
