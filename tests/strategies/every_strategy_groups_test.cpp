// Kernels between points of contact are simulated together, and nobody can tell: the digest of all
// events, why each device idles and what memory it holds are those of a task per kernel.
#include "strategies/lower/lower.hpp"
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

TEST(EveryStrategy, SimulatesKernelsTogetherAsOneByOne) {
  int grouped = 0, by_tasks = 0;
  hold_for_every_strategy([&](const std::string& strategy) {
    Job job = random_job(strategy);
    job.granularity = Granularity::kernel;
    PlannedJob planned(job);
    if (!lower::can_be_grouped(planned.job, planned.plan)) return;
    const CostContext context = planned.costs.context();
    const lower::PlanCosts costs(planned.plan, context.layers);
    const auto together = simulate_kernel_groups(planned.job, planned.plan, context, costs);
    ++(together ? grouped : by_tasks);
    if (!together) return;  // the order of transfers needs every kernel
    const SimulatedStep step = planned.simulate();
    const StepAccounts alone =
        accounts_of(step.program, step.timeline, step.device_times(), step.memory());
    RC_ASSERT(together->span == alone.span);
    RC_ASSERT(together->busy == alone.busy);
    for (std::size_t d = 0; d < alone.bubbles.size(); ++d)
      for (std::size_t k = 0; k < kBubbleKinds; ++k)
        RC_ASSERT(together->bubbles[d].times[k] == alone.bubbles[d].times[k]);
    RC_ASSERT(together->peaks == alone.peaks);
    RC_ASSERT(together->digest == alone.digest);
  });
  EXPECT_GT(grouped, 10 * by_tasks);
}

// Two stages of a small LLM, kernel by kernel: a task per pass and direction instead of one per
// kernel.
TEST(KernelGroups, AreAFewTasks) {
  Job job = small_job();
  job.granularity = Granularity::kernel;
  use_defaults(job);
  JobCosts costs(job);
  const Plan plan = make_plan(job, costs.context());
  const lower::PlanCosts known(plan, costs.layers);
  const CostContext context = costs.context();
  const lower::ModelledCosts modelled(context, known);
  const std::size_t tasks = lower::to_program(job, plan, modelled).tasks().size();
  const std::size_t groups = lower::to_grouped_program(job, plan, modelled).program.tasks().size();
  EXPECT_LT(groups * 8, tasks);
}

}  // namespace
}  // namespace mllmsim
