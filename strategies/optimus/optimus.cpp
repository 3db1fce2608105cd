// Optimus (ATC 2025): the LLM has the whole pipeline to itself, and the encoders run inside its
// bubbles with parallel sizes of their own (planner.hpp).
#include "strategies/optimus/planner.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::optimus {
namespace {

class Optimus : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    return plan_encoders(job, costs, plan_of_llm(job, costs, plans::pass_of(job)));
  }
};

const Registration registration{
    {"optimus", "encoders with a parallel plan of their own inside the LLM's bubbles",
     encoder_options(), [] { return std::unique_ptr<Strategy>(new Optimus); }}};

}  // namespace
}  // namespace mllmsim::optimus
