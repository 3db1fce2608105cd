// Equal GPUs are interchangeable, where the network treats them alike: here every pipeline rank of
// every replica has a node of its own, all on one leaf. Where some replicas share nodes and others
// do not, their messages take different ways.
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

Job job_on_nodes_alike(const std::string& strategy) {
  Job job = random_job(strategy);
  const Parallelism& p = job.parallelism;
  job.cluster = small_job().cluster;
  job.cluster.host_link_bandwidth = {64e9};
  job.cluster.gpus_per_node = p.tensor_model_parallel_size;
  job.cluster.nics_per_node = 1;
  job.cluster.nodes = p.world_size() / p.tensor_model_parallel_size;
  return job;
}

// Replicas with equal data are simulated once: the one stands for all.
TEST(EveryStrategy, OneReplicaStandsForAllThatDoTheSame) {
  hold_for_every_strategy([](const std::string& strategy) {
    Job job = job_on_nodes_alike(strategy);
    job.data.set = nullptr;
    PlannedJob planned(job);
    const SimulatedStep one = planned.simulate();
    Plan every = planned.plan;
    every.micro_batches.assign(static_cast<std::size_t>(job.parallelism.data_parallel_size),
                               planned.plan.micro_batches.front());
    RC_ASSERT(simulate_as(job, every).span() == one.span());
  });
}

// Replicas that swap their data swap what they do.
TEST(EveryStrategy, ReplicasMaySwapTheirData) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(job_on_nodes_alike(strategy));
    const SimulatedStep before = planned.simulate();
    Plan swapped = planned.plan;
    std::reverse(swapped.micro_batches.begin(), swapped.micro_batches.end());
    const SimulatedStep after = simulate_as(planned.job, swapped);
    RC_ASSERT(after.span() == before.span());
  });
}

}  // namespace
}  // namespace mllmsim
