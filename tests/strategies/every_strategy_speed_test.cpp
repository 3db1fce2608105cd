// How a fixed plan's step follows the speed of its parts.
//
// A program is tasks in a fixed order, each of which starts when others have ended. So a step is a
// maximum of sums of durations: it never grows if one of them shrinks, and grows by no more than
// the share by which all of them do. That holds to the nanosecond as long as transfers do not slow
// each other on links. Where they do, it need not: parts that are faster can bring two transfers
// together that came one after the other before, and the one that matters then ends later. Nor
// where the CPU's launches take longer than a layer's kernels: what is exposed of a collective
// counts as one more launch, and waiting for the CPU counts as computing. Durations
// are rounded to nanoseconds, which the sums add up.
#include "cost_models/kernels/scaled_costs.hpp"
#include "sim/world/network.hpp"
#include "strategies/run/simulate.hpp"
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

// Room for the rounding of every task on the longest path.
Time rounding(const SimulatedStep& step) {
  return Time{static_cast<std::int64_t>(step.program.tasks().size())};
}

// Links that nothing slows.
Time without_sharing(const Program& program, const Network& network) {
  std::vector<BytesPerSecond> bandwidths = network.link_bandwidths();
  for (BytesPerSecond& b : bandwidths) b = {1e30};
  return simulate(program, bandwidths).span;
}

// The planned job's plan with other kernel times.
struct Rescaled {
  Rescaled(const PlannedJob& planned, const CostFactors& factors)
      : kernels(*planned.costs.kernels, factors), own(planned.job, kernels) {
    step = simulate_plan(planned.job, planned.plan, own.context());
  }
  ScaledCosts kernels;
  run::JobCosts own;
  SimulatedStep step{Program(0), {}};
};

double& random_factor(CostFactors& f) {
  return **rc::gen::element(&f.gemm, &f.attention, &f.memory_bound, &f.optimizer,
                            &f.collectives_in_node, &f.collectives_across_nodes, &f.point_to_point);
}

Job job_bound_by_gpus(const std::string& strategy) {
  Job job = random_job(strategy);
  job.software.host_time_per_kernel = job.software.host_time_per_expert_kernel = {};
  return job;
}

TEST(EveryStrategy, IsNeverSlowedByFasterKernels) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(job_bound_by_gpus(strategy));
    CostFactors factors;
    random_factor(factors) = *rc::gen::element(0.3, 0.7, 0.95);
    const Network& network = planned.costs.context().network;
    const SimulatedStep step = planned.simulate();
    const Rescaled faster(planned, factors);
    RC_ASSERT(without_sharing(faster.step.program, network) <=
              without_sharing(step.program, network) + rounding(step));
  });
}

TEST(EveryStrategy, IsNeverSlowedByFasterLinks) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(job_bound_by_gpus(strategy));
    Job faster = planned.job;
    BytesPerSecond& link =
        random_bool() ? faster.cluster.nic_bandwidth : faster.cluster.nvlink_bandwidth;
    link = link * *rc::gen::element(1.1, 2.0, 10.0);
    const SimulatedStep step = planned.simulate();
    const Network& network = planned.costs.context().network;
    RC_ASSERT(without_sharing(simulate_as(faster, planned.plan).program, network) <=
              without_sharing(step.program, network) + rounding(step));
  });
}

// Times of kernels and bandwidths of links; not numbers of tokens, for which kernels are cut into
// tiles: one more can cost a whole wave of them.
TEST(EveryStrategy, MovesByAtMostTwoPercentIfAnInputMovesByOne) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const SimulatedStep before = planned.simulate();
    const auto near = [&](const SimulatedStep& after) {
      const Time moved = std::max(after.span() - before.span(), before.span() - after.span());
      return moved <= scaled(before.span(), 0.02) + rounding(before);
    };
    const double change = *rc::gen::element(0.99, 1.01);
    CostFactors factors;
    random_factor(factors) = change;
    RC_ASSERT(near(Rescaled(planned, factors).step));
    Job job = planned.job;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        job.cluster.nic_bandwidth = job.cluster.nic_bandwidth * change;
        break;
      case 1:
        job.cluster.nvlink_bandwidth = job.cluster.nvlink_bandwidth * change;
        break;
      case 2:
        job.software.host_time_per_kernel = job.software.host_time_per_kernel * change;
        job.software.host_time_per_expert_kernel =
            job.software.host_time_per_expert_kernel * change;
        break;
      default:
        job.cluster.topology.oversubscription *= change;
    }
    RC_ASSERT(near(simulate_as(job, planned.plan)));
  });
}

// Both count attention over the full square, so a causal kernel that skips half of it may seem to
// pass the GPU's peak if sequences are long enough to be nearly all attention; not up to 2,048.
TEST(EveryStrategy, UsesNoMoreFlopsThanItExecutesNorThanThereAre) {
  hold_for_every_strategy([](const std::string& strategy) {
    Job job = random_job(strategy);
    job.data.steps = 2;
    const PlannedJob planned(job);
    const Outcome outcome = simulate(planned.job, *planned.costs.kernels, {.timeline = false});
    RC_ASSERT(outcome.mfu > 0);
    RC_ASSERT(outcome.mfu <= outcome.hfu * (1 + 1e-12));
    RC_ASSERT(outcome.hfu <= 1);
  });
}

}  // namespace
}  // namespace mllmsim
