// A plan, lowered and simulated: what strategies try plans with, and what a run measures.
//
// One step, that of plan.micro_batches. The program and its timeline are all there is; who needs
// bubbles or memory asks for them.
#pragma once

#include <optional>

#include "sim/account/bubbles.hpp"
#include "sim/account/group_accounts.hpp"
#include "sim/account/memory.hpp"
#include "sim/kernel/simulation.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/lower/lower.hpp"

namespace mllmsim {

struct SimulatedStep {
  Program program;
  Timeline timeline;

  Time span() const { return timeline.span; }
  std::vector<DeviceTime> device_times() const { return account(program, timeline); }
  std::vector<std::vector<MemoryPoint>> memory() const { return memory_profile(program, timeline); }
};

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs);

// With the costs of the plan's micro-batches, known already.
SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            const lower::PlanCosts& known);

// Its accounts alone, of a plan that is simulated kernel by kernel: kernels between points of
// contact are simulated together, a tenth of the work. Nothing, if this plan must be simulated
// otherwise.
std::optional<StepAccounts> simulate_kernel_groups(const Job& job, const Plan& plan,
                                                   const CostContext& costs,
                                                   const lower::PlanCosts& known);

// And where the LLM's passes begin and end in the program.
SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            std::vector<std::vector<lower::PassSpan>>& passes);

// Of a job whose times are given.
SimulatedStep simulate_plan(const Job& job, const Plan& plan);

}  // namespace mllmsim
