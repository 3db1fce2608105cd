// Pictures, videos and recordings as what an encoder and the LLM see of them, by the encoder's own
// rule. Each function follows its family's processor in transformers, named beside it.
#pragma once

#include "sim/world/batch.hpp"
#include "sim/world/model.hpp"

namespace mllmsim {

struct MediaTokens {
  std::vector<SequenceGroup> encoder;  // a group a length
  std::int64_t llm = 0;
};

// `frames` above 1: a video, of which every frame is a picture to encoders that know no time.
MediaTokens image_tokens(const Encoder& encoder, ImageSize size, std::int64_t frames = 1);

// Frames taken of a video of so many seconds: fps of them each second, whole temporal patches
// (sample_frames of Qwen's video processors).
std::int64_t frames_of(const Encoder& e, double seconds);

MediaTokens audio_tokens(const Encoder& encoder, double seconds);

}  // namespace mllmsim
