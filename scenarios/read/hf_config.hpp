// Hugging Face's config.json as the table a user would have written instead.
//
// What a config leaves to its model class (SwiGLU or GELU, which norm, which biases) follows from
// its model_type. Configs of multimodal models hold their parts in text_config or llm_config and
// vision_config; those are taken. Keys the config does not state are not guessed: they stay missing
// and are asked for.
#pragma once

#include <filesystem>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

enum class ModelPart : std::uint8_t { llm, encoder };

// Throws UserError naming the file and the key.
Node read_hf_config(const std::filesystem::path& file, ModelPart part);

}  // namespace mllmsim::scenarios
