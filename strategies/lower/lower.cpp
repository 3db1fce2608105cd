#include "strategies/lower/lower.hpp"

#include <optional>

#include "strategies/lower/data_parallel.hpp"
#include "strategies/lower/encoder_collectives.hpp"
#include "strategies/lower/encoder_passes.hpp"
#include "strategies/lower/encoder_transfers.hpp"
#include "strategies/lower/optimizer.hpp"
#include "strategies/lower/passes.hpp"
#include "strategies/lower/pipeline.hpp"
#include "strategies/lower/sharded.hpp"
#include "strategies/lower/tied_embedding.hpp"

namespace mllmsim::lower {
namespace {

void add_step(StepBuilder& step, const GivenTimes& times) {
  add_given_passes(step, times);
  add_given_pipeline(step, times);
}

void add_step(StepBuilder& step, const ModelledCosts& costs) {
  const CostContext& models = costs.models;
  Communication communication(step, models);
  ShardedLayers sharded(step, models, communication);
  std::optional<EncoderPasses> encoders;
  if (step.plan().encoders) encoders.emplace(step, models);

  Passes passes(step, costs, sharded, encoders ? &*encoders : nullptr);
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank) {
      passes.add(replica, rank);
      if (encoders) encoders->issue_rest(replica, rank);
      if (replica == 0 && rank == 0) {  // the other devices have about as many
        const std::size_t devices = step.program().devices();
        step.program().reserve(step.program().tasks().size() * devices * 5 / 4,
                               step.program().dependencies().size() * devices * 5 / 4);
      }
    }
  add_pipeline(step, models.layers, communication);
  if (encoders) add_encoder_transfers(step, communication, *encoders);

  // The encoders' parameters first: their forwards come first.
  if (encoders) gather_encoder_parameters(step, communication, *encoders);
  if (step.job().parallelism.zero_stage == 3)
    sharded.add_collectives();
  else
    add_data_parallel(step, communication);
  if (encoders) reduce_encoder_gradients(step, communication, *encoders);
  reduce_tied_embedding(step, communication);
  add_optimizer(step, models,
                encoders ? encoders->last_tasks() : std::vector<TaskId>(step.program().devices()));
}

}  // namespace

Program to_program(const Job& job, const Plan& plan, const CostSource& source) {
  StepBuilder step(job, plan);
  std::visit([&](const auto& costs) { add_step(step, costs); }, source);
  return std::move(step.program());
}

Program to_program(const Job& job, const Plan& plan, const CostContext& costs) {
  const PlanCosts of_plan(plan, costs.layers);
  return to_program(job, plan, ModelledCosts{costs, of_plan});
}

bool can_be_grouped(const Job& job, const Plan& plan) {
  return (plan.encoders || job.granularity == Granularity::kernel) && !job.given_times &&
         job.parallelism.zero_stage < 3 && job.software.cpu_offloading_num_layers == 0;
}

GroupedProgram to_grouped_program(const Job& job, const Plan& plan, const ModelledCosts& costs) {
  StepBuilder step(job, plan, true);
  add_step(step, costs);
  return {std::move(step.program()), std::move(step.kernel_groups())};
}

ProgramWithPasses to_program_with_passes(const Job& job, const Plan& plan,
                                         const CostContext& costs) {
  const PlanCosts of_plan(plan, costs.layers);
  StepBuilder step(job, plan);
  add_step(step, ModelledCosts{costs, of_plan});
  std::vector<std::vector<PassSpan>> passes;
  for (int rank = 0; rank < step.ranks(); ++rank) {
    std::vector<PassSpan>& spans = passes.emplace_back();
    for (const Pass& pass : step.schedule(rank)) {
      const PassTasks& tasks = step.tasks_of(0, rank, pass);
      spans.push_back({tasks.segments.front().first, tasks.last(), tasks.start});
    }
  }
  return {std::move(step.program()), std::move(passes)};
}

}  // namespace mllmsim::lower
