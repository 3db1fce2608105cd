// What is between an encoder and the LLM: projector, DeepStack's further ones, resampler.
#pragma once

#include "scenarios/tree/toml_reader.hpp"
#include "sim/world/model.hpp"

namespace mllmsim::scenarios {

// shuffle: of the encoder's pixel_shuffle. llm_width: 0 if that has a problem already.
void read_projector(TableReader& encoder, Encoder& e, double shuffle, std::int64_t llm_width,
                    Problems& problems);

}  // namespace mllmsim::scenarios
