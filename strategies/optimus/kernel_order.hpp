// From times to an order: the kernels of encoder passes, placed among the LLM's, as the slots that
// an EncoderPlan holds.
#pragma once

#include <vector>

#include "strategies/job/encoder_plan.hpp"
#include "strategies/optimus/llm_timeline.hpp"

namespace mllmsim::optimus {

// The kernels of one pass on one rank.
struct PlacedPass {
  int rank = 0;
  EncoderPass pass;
  std::vector<Gap> kernels;
};

// Merges the passes of one rank into its LLM kernels by their starts. At equal starts the encoder's
// kernel comes first; but a backward comes behind LLM kernels that are over by then, since one that
// takes no time may be what it waits for.
EncoderRank order_of(const RankTimeline& llm, const std::vector<const PlacedPass*>& passes);

}  // namespace mllmsim::optimus
