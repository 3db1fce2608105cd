// When the LLM alone computes and communicates on each rank, and when it leaves a stream free.
//
// A GPU that idles because its CPU prepares a pass has no bubble: who would launch an encoder's
// kernels is busy.
//
// Times are those of the simulated step without encoders. Work put before the LLM's computation has
// negative times: a step that starts S earlier has S more room there.
#pragma once

#include <vector>

#include "sim/kernel/simulation.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/optimus/gaps.hpp"

namespace mllmsim::optimus {

// A kernel of the LLM, compute or tp, in the order it is issued.
struct IssuedKernel {
  Time start, end;
  std::uint32_t pass, kernel;  // as in EncoderSlot
};

struct RankTimeline {
  std::vector<IssuedKernel> kernels;
  // Free, in time order; the first from -kAlways, the last to kAlways.
  std::vector<Gap> compute, tp;
  Time first_start{}, last_end{};  // of its computation, the optimizer's excluded
  std::uint32_t passes = 0;
};

struct LlmTimeline {
  std::vector<RankTimeline> ranks;
  std::vector<Time> forward_start;  // F_i: when rank 0 starts forward i
  std::vector<Time> backward_end;   // B_i: when rank 0 ends backward i
  Time span{};                      // of the step
};

LlmTimeline llm_timeline(const Plan& plan, const Program& program, const Timeline& timeline,
                         const std::vector<std::vector<lower::PassSpan>>& passes);

}  // namespace mllmsim::optimus
