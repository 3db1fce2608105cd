#include "strategies/lower/lower.hpp"

#include <algorithm>
#include <set>

#include "sim/base/errors.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {

Program lower(const Job& job, const Plan& plan, const CostContext* costs,
              const PlanCosts* plan_costs) {
  check(costs != nullptr || job.given_times, "lowering needs costs or given times");
  check(!plan.stages.empty() && !plan.micro_batches.empty(), "a plan has stages and micro-batches");
  if (costs == nullptr || plan_costs != nullptr)
    return Lowering(job, plan, costs, plan_costs).run();
  const PlanCosts own(plan, costs->layers);
  return Lowering(job, plan, costs, &own).run();
}

Program lower(const Job& job, const Plan& plan, const CostContext* costs,
              std::vector<std::vector<PassSpan>>& passes) {
  check(costs != nullptr, "pass spans need costs");
  const PlanCosts own(plan, costs->layers);
  Lowering lowering(job, plan, costs, &own);
  Program program = lowering.run();
  passes = lowering.pass_spans();
  return program;
}

std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained) {
  std::int64_t n = 0;
  for (const PlannedLayer& p : chunk)
    if (!only_trained || trained(job.model, p.layer))
      n += parameters_per_rank(job.model, p.layer, job.parallelism.tensor_model_parallel_size);
  return n;
}

Lowering::Lowering(const Job& job, const Plan& plan, const CostContext* costs,
                   const PlanCosts* plan_costs)
    : job_(job),
      plan_(plan),
      costs_(costs),
      plan_costs_(plan_costs),
      program_(static_cast<std::uint32_t>(replicas() * ranks())),
      last_kernel_(program_.devices()),
      granularity_(plan.encoders ? Granularity::kernel : job.granularity) {
  for (int r = 0; r < replicas(); ++r)
    max_micro_batches_ = std::max(max_micro_batches_, micro_batches(r));
  passes_.resize(program_.devices() * static_cast<std::size_t>(max_micro_batches_ * chunks() * 2));
}

std::vector<std::vector<PassSpan>> Lowering::pass_spans() {
  std::vector<std::vector<PassSpan>> spans(static_cast<std::size_t>(ranks()));
  for (int rank = 0; rank < ranks(); ++rank)
    for (const Pass& pass : schedules_[static_cast<std::size_t>(rank)]) {
      const PassTasks& tasks = tasks_of(0, rank, pass);
      spans[static_cast<std::size_t>(rank)].push_back({tasks.segments.front().first, tasks.last()});
    }
  return spans;
}

Program Lowering::run() {
  if (plan_.encoders) prepare_encoders();
  for (int r = 0; r < replicas(); ++r)
    for (int rank = 0; rank < ranks(); ++rank) {
      if (r == 0)
        schedules_.push_back(schedule(plan_.schedule, ranks(), chunks(), micro_batches(r), rank));
      check(micro_batches(r) == micro_batches(0), "replicas have equally many micro-batches");
      add_passes(r, rank);
      if (!job_.given_times && !job_.software.overlap_p2p) take_turns(r, rank);
    }
  for (int r = 0; r < replicas(); ++r)
    for (int rank = 0; rank < ranks(); ++rank) add_pipeline(r, rank);
  if (plan_.encoders)
    for (int r = 0; r < replicas(); ++r) add_encoder_transfers(r);
  if (!job_.given_times) {
    add_data_parallel();
    add_optimizer();
  }
  return std::move(program_);
}

PassTasks& Lowering::tasks_of(int replica, int rank, const Pass& pass) {
  const std::size_t index =
      (device(replica, rank).value * static_cast<std::size_t>(max_micro_batches_) +
       pass.micro_batch) *
          static_cast<std::size_t>(chunks()) +
      pass.chunk;
  return passes_[index * 2 + (pass.forward ? 0 : 1)];
}

std::vector<int> Lowering::replicas_behind(int replica) const {
  if (replicas() > 1) return {replica};
  std::vector<int> all(static_cast<std::size_t>(job_.parallelism.data_parallel_size));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

std::vector<LinkUse> Lowering::seen_by(int replica, std::vector<LinkUse> uses) const {
  const Parallelism& p = job_.parallelism;
  std::set<int> nodes;
  for (int rank = 0; rank < ranks(); ++rank)
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      nodes.insert(job_.cluster.node_of(p.rank(tp, replica, rank)));
  std::erase_if(uses, [&](const LinkUse& use) {
    const auto node = costs_->network.node_of(use.link);
    return node && !nodes.contains(*node);
  });
  return uses;
}

}  // namespace mllmsim::lower
