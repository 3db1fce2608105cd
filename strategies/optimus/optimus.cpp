// Optimus (ATC 2025): the LLM has the whole pipeline to itself, and the encoders run inside its
// bubbles with parallel sizes of their own (planner.hpp).
#include "strategies/optimus/optimus.hpp"

#include "strategies/optimus/planner.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::optimus {
namespace {

Plan plan_optimus(const Job& job, const CostContext& costs) {
  return plan_encoders(job, costs, plan_of_llm(job, costs, plans::pass_of(job)));
}

}  // namespace

Strategy optimus_strategy() {
  return {"optimus", "encoders with a parallel plan of their own inside the LLM's bubbles",
          encoder_options(), plan_optimus, check_encoder_sizes};
}

}  // namespace mllmsim::optimus
