#include "strategies/step/simulate_plan.hpp"

namespace mllmsim {
namespace {

SimulatedStep simulated(Program program, const std::vector<BytesPerSecond>& bandwidths) {
  Timeline timeline = simulate(program, bandwidths);
  return {std::move(program), std::move(timeline)};
}

}  // namespace

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs) {
  return simulated(lower::lower(job, plan, &costs), costs.network.link_bandwidths());
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            const lower::PlanCosts& known) {
  return simulated(lower::lower(job, plan, &costs, &known), costs.network.link_bandwidths());
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan, const CostContext& costs,
                            std::vector<std::vector<lower::PassSpan>>& passes) {
  return simulated(lower::lower(job, plan, &costs, passes), costs.network.link_bandwidths());
}

SimulatedStep simulate_plan(const Job& job, const Plan& plan) {
  return simulated(lower::lower(job, plan, nullptr), {});
}

}  // namespace mllmsim
