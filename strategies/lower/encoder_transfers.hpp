// What joins encoders beside the LLM's pipeline to each other and to the LLM:
//
//   forward    first encoder stage of a group -> ... -> last -> LLM rank 0, before forward i there
//   backward   LLM rank 0, after backward i there -> last encoder stage -> ... -> first
//
// Activations to and from the LLM travel by P2P unless the last encoder stage is on LLM rank 0.
// Backwards stop where nothing before is trained.
#pragma once

#include "strategies/lower/communication.hpp"
#include "strategies/lower/encoder_passes.hpp"

namespace mllmsim::lower {

void add_encoder_transfers(StepBuilder& step, Communication& communication,
                           const EncoderPasses& encoders);

}  // namespace mllmsim::lower
