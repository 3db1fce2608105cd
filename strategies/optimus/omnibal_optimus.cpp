// OmniBal and Optimus together: balanced packs feed encoder micro-batches that run inside the LLM's
// bubbles; OmniBal's partition search cuts the LLM, which recomputes only what does not fit beside
// the encoders.
#include <algorithm>

#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/omnibal/balanced_model.hpp"
#include "strategies/optimus/encoder_search.hpp"
#include "strategies/optimus/optimus.hpp"
#include "strategies/optimus/planner.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/pass.hpp"

namespace mllmsim::optimus {
namespace {

Plan plan_omnibal_optimus(const Job& job, const CostContext& costs) {
  const Job packed = omnibal::with_packs(job);
  const auto pass = plans::pass_of(packed);
  Plan llm = plan_of_llm(packed, costs, pass);
  if (omnibal::is_on(job, "model"))
    llm.stages = omnibal::balanced_partition(packed, costs, llm_layers(job.model), llm);
  if (omnibal::is_on(job, "memory") && !job.model.encoders.empty()) {
    const MicroBatch largest =
        pass ? plans::largest_micro_batch(packed, *pass) : plans::uniform_micro_batch(packed);
    const Bytes beside_encoders =
        std::max(Bytes{}, job.cluster.gpu_memory - frugal_encoder_memory(packed, costs, llm));
    omnibal::adapt_recompute(packed, costs, largest, beside_encoders, llm);
  }
  return plan_encoders(packed, costs, std::move(llm));
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = encoder_options();
  for (const OptionSpec& o : omnibal::omnibal_options()) all.push_back(o);
  return all;
}

}  // namespace

Strategy omnibal_optimus_strategy() {
  return {"omnibal+optimus",
          "balanced packs and adaptive recompute, encoders inside the LLM's bubbles", options(),
          plan_omnibal_optimus, check_encoder_sizes};
}

}  // namespace mllmsim::optimus
