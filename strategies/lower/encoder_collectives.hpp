// Parameters and gradients of encoders beside the LLM's pipeline, over all encoder pipelines:
// bucket by bucket (buckets.hpp), gathered before the first forward through a bucket and reduced
// after the last backward through it.
#pragma once

#include "strategies/lower/communication.hpp"
#include "strategies/lower/encoder_passes.hpp"

namespace mllmsim::lower {

// With zero_stage 1; otherwise every GPU has all parameters of its stage.
void gather_encoder_parameters(StepBuilder& step, Communication& communication,
                               const EncoderPasses& encoders);
void reduce_encoder_gradients(StepBuilder& step, Communication& communication,
                              const EncoderPasses& encoders);

}  // namespace mllmsim::lower
