// Hugging Face's config.json as the table a user would have written instead.
//
//   text_models     the LLM: model_type decides what its class fixes (SwiGLU or GELU, which norm,
//                   which biases) and where its config says the rest; windows, experts, latent
//                   attention and multi-token prediction included
//   vision_models   the encoder, likewise
//   whole_models    both and what is between them: projector, tokens, how pictures become tiles
//
// Configs of multimodal models hold their parts in text_config or llm_config (or, of older Qwen-VL,
// among their own keys) and vision_config. What a config does not state follows from its class's
// defaults where published configs rely on them; otherwise it stays missing and is asked for. A key
// that changes what layers cost and is not modelled is refused by name (config_object.hpp).
#pragma once

#include <filesystem>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

enum class ModelPart : std::uint8_t { llm, encoder };

// Both throw UserError naming the file and the key.
Node read_hf_config(const std::filesystem::path& file, ModelPart part);
// The whole model: a table with an llm and, if it has them, encoders.
Node read_hf_model(const std::filesystem::path& file);

// Whether the config has an encoder beside its llm; false if it cannot be read.
bool is_multimodal_config(const std::filesystem::path& file);

}  // namespace mllmsim::scenarios
