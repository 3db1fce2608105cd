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

#include <vector>

#include "strategies/job/encoder_plan.hpp"
#include "strategies/optimus/encoder_work.hpp"
#include "strategies/optimus/llm_timeline.hpp"

namespace mllmsim::optimus {

enum class Placement : std::uint8_t { coarse, fine };

struct BubbleSchedule {
  std::vector<EncoderWave> waves;
  std::vector<EncoderRank> ranks;
  Time estimate{};  // of the step
};

// with_order: also the order of each rank's kernels, not only waves and estimate.
BubbleSchedule schedule_encoders(const EncoderWork& work, const LlmTimeline& llm,
                                 Placement placement, std::size_t most_waves, bool with_order);

}  // namespace mllmsim::optimus
