#include "strategies/step/simulate_plan.hpp"

#include "sim/base/errors.hpp"
#include "strategies/lower/known_routes.hpp"

namespace mllmsim {
namespace {

SimulatedStep simulated(Program program, const CostContext& costs) {
  Timeline timeline = simulate(program, costs.routes.links(program));
  return {std::move(program), std::move(timeline)};
}

}  // namespace

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs) {
  return simulated(lower::to_program(job, plan, costs), costs);
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            const lower::PlanCosts& known) {
  return simulated(lower::to_program(job, plan, lower::ModelledCosts{costs, known}), costs);
}

std::optional<StepAccounts> simulate_kernel_groups(const Job& job, const Plan& plan,
                                                   const CostContext& costs,
                                                   const lower::PlanCosts& known) {
  if (!lower::can_be_grouped(job, plan)) return std::nullopt;
  const auto [program, groups] = lower::to_grouped_program(job, plan, {costs, known});
  GroupAccounts accounts(program, groups);
  const auto timeline = simulate_groups(program, costs.routes.links(program), accounts);
  if (!timeline) return std::nullopt;
  return accounts.finish(*timeline);
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            std::vector<std::vector<lower::PassSpan>>& passes) {
  lower::ProgramWithPasses lowered = lower::to_program_with_passes(job, plan, costs);
  passes = std::move(lowered.passes);
  return simulated(std::move(lowered.program), costs);
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan) {
  check(job.given_times.has_value(), "a plan without costs has given times");
  Program program = lower::to_program(job, plan, *job.given_times);
  Timeline timeline = simulate(program, {});
  return {std::move(program), std::move(timeline)};
}

}  // namespace mllmsim
