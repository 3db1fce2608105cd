// OmniBal and Optimus together: balanced packs feed encoder micro-batches that run inside the LLM's
// bubbles; the LLM is cut into stages of equal time and recomputes only what does not fit beside
// the encoders.
#include <algorithm>

#include "strategies/data/pass.hpp"
#include "strategies/omnibal/adaptive_recompute.hpp"
#include "strategies/optimus/encoder_search.hpp"
#include "strategies/optimus/planner.hpp"
#include "strategies/partition.hpp"

namespace mllmsim {
namespace {

class OmnibalOptimus : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    Job packed = job;
    if (std::get<bool>(job.options.at("data")))
      packed.data.batching = std::get<std::string>(job.options.at("packing")) == "isf"
                                 ? Batching::isf
                                 : Batching::best_fit;
    const auto pass = pass_of(packed);
    Plan llm = plan_of_llm(packed, costs, pass);
    if (std::get<bool>(job.options.at("memory")) && !job.model.encoders.empty()) {
      const MicroBatch largest =
          pass ? largest_micro_batch(packed, *pass) : uniform_micro_batch(packed);
      Job beside = packed;
      beside.cluster.gpu_memory =
          std::max(Bytes{}, beside.cluster.gpu_memory - frugal_encoder_memory(packed, costs, llm));
      adapt_recompute(beside, costs, largest, llm);
    }
    return plan_encoders(packed, costs, std::move(llm));
  }
};

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = encoder_options();
  all.push_back({"data", "pack samples; otherwise as data.batching says", true});
  all.push_back({"memory", "recompute only what does not fit; otherwise as the job says", true});
  all.push_back({"packing", "the packer", std::string("isf"), {"isf", "best-fit"}});
  return all;
}

const Registration registration{
    {"omnibal+optimus", "balanced packs and adaptive recompute, encoders inside the LLM's bubbles",
     options(), [] { return std::unique_ptr<Strategy>(new OmnibalOptimus); }}};

}  // namespace
}  // namespace mllmsim
