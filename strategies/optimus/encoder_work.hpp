// What one encoder plan has to do in a step, as times: all that the bubble scheduler needs to know
// of it.
//
// The micro-batches of the LLM pass through the encoders in waves of `lanes`, in order. Waves whose
// micro-batches hold the same tokens are of one kind and have the same kernels.
#pragma once

#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::optimus {

struct EncoderWork {
  struct Kernel {
    Time time, slowed;  // alone, and beside a collective of the LLM
    bool tp = false;
    std::uint32_t layer = 0;
  };
  struct Reduction {
    std::uint32_t from, to;  // layers
    Time time;
  };

  int pp = 1, groups = 1;
  std::uint32_t lanes = 1, micro_batches = 0;
  std::vector<std::uint32_t> kinds;  // by wave
  // By kind, then encoder stage. backward: empty where no gradient flows.
  std::vector<std::vector<std::vector<Kernel>>> forward, backward;
  std::vector<bool> has_backward;  // by encoder stage: gradients flow back into it
  std::vector<Time> hops;          // by encoder stage: to the next
  std::vector<Time> to_llm;        // by group: from its last stage to the LLM's first
  // By encoder stage and layer: when its parameters are gathered, from the step's start.
  std::vector<std::vector<Time>> gathered;
  // By encoder stage: buckets in the order their gradients are reduced.
  std::vector<std::vector<Reduction>> reductions;
  Time all{};  // time of all waves' kernels on a rank, mean over ranks

  std::uint32_t waves() const { return static_cast<std::uint32_t>(kinds.size()); }
  const std::vector<Kernel>& kernels(std::uint32_t wave, int stage, bool is_forward) const {
    return (is_forward ? forward : backward)[kinds[wave]][static_cast<std::size_t>(stage)];
  }
};

// `encoder_costs`: with the encoders' own parallel sizes. Only the plan's sizes and stages count.
EncoderWork encoder_work(const Job& job, const Plan& llm, const EncoderPlan& plan,
                         costs::LayerCosts& encoder_costs, const CostContext& costs);

}  // namespace mllmsim::optimus
