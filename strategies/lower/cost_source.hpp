// Where the durations of a step's tasks come from.
//
//   GivenTimes      the scenario gives the time of a chunk's pass and of a transfer. Nothing else
//                   is known, so a step is passes and transfers: no layers, tp, data parallelism,
//                   optimizer, memory or shared links.
//   ModelledCosts   calibrated cost models; what the micro-batches of this plan cost is summed up
//                   already.
#pragma once

#include <variant>

#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/lower/plan_costs.hpp"

namespace mllmsim::lower {

struct ModelledCosts {
  // Not an aggregate: clang 14 crashes on whether a CostContext could begin one.
  ModelledCosts(const CostContext& cost_models, const PlanCosts& of_plan)
      : models(cost_models), plan(of_plan) {}

  const CostContext& models;
  const PlanCosts& plan;
};

using CostSource = std::variant<GivenTimes, ModelledCosts>;

}  // namespace mllmsim::lower
