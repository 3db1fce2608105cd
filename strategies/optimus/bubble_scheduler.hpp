// The bubble scheduler of Optimus (ATC 2025): where each encoder kernel goes among the LLM's.
//
//   coarse   all encoder forwards before a rank's first LLM kernel, all backwards after its last
//   fine     every kernel as early as it fits into a gap of its stream between LLM kernels, in
//            order within a rank; encoder tp collectives only where the LLM's tp stream is free,
//            which is under its long compute kernels and never in its tp bubbles
//
// With F_i and B_i of the LLM alone, the wave that becomes micro-batch i has to arrive by F_i and
// can go back from B_i on. The step starts S earlier than the LLM alone would, S as small as lets
// every wave arrive in time. Waves go to the group of ranks that finishes them first, no group
// taking more than `most_waves`; finishing order decides which micro-batches a wave holds. Times
// only decide the order; what the order is worth is simulated.
#pragma once

#include <map>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/optimus/llm_timeline.hpp"

namespace mllmsim::optimus {

enum class Placement : std::uint8_t { coarse, fine };

// What the scheduler needs to know of one encoder plan.
class EncoderWork {
 public:
  EncoderWork(const Job& job, const Plan& llm, const EncoderPlan& plan,
              costs::LayerCosts& encoder_costs, const CostContext& costs);

  struct Kernel {
    Time time, slowed;  // alone, and beside a collective of the LLM
    bool tp;
    std::uint32_t layer;
  };
  // Of a wave with these micro-batches through an encoder stage.
  const std::vector<Kernel>& kernels(std::uint32_t first, std::uint32_t count, int stage,
                                     bool forward);
  Time between_stages(int stage) const { return hops_[static_cast<std::size_t>(stage)]; }
  Time to_llm(std::uint32_t group) const { return to_llm_[group]; }

  const Plan& llm;
  const EncoderPlan& plan;
  int lanes = 1, groups = 1;
  bool backward = true;              // gradients flow back into the last encoder stage
  std::vector<bool> stage_backward;  // by encoder stage
  // By encoder stage and layer: when a layer's parameters are gathered, counted from the step's
  // start.
  std::vector<std::vector<Time>> gathered;
  // By encoder stage: buckets in the order their gradients are reduced.
  struct Reduction {
    std::uint32_t from, to;  // layers
    Time time;
  };
  std::vector<std::vector<Reduction>> reductions;
  Time all{};  // time of all waves' kernels on a rank, mean over ranks

 private:
  struct Key {
    std::vector<TokenBatch> tokens;
    int stage;
    bool forward;
    auto operator<=>(const Key&) const = default;
  };
  costs::LayerCosts& costs_;
  double slowdown_;
  std::vector<Time> hops_, to_llm_;
  std::map<Key, std::vector<Kernel>> known_;
  bool uniform_ = true;
};

struct BubbleSchedule {
  std::vector<EncoderWave> waves;
  std::vector<EncoderRank> ranks;
  Time estimate{};  // of the step
};

// with_order: also the order of each rank's kernels, not only waves and estimate.
BubbleSchedule schedule_encoders(EncoderWork& work, const LlmTimeline& llm, Placement placement,
                                 std::size_t most_waves, bool with_order);

}  // namespace mllmsim::optimus
