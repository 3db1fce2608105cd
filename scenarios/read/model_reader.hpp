// A resolved model table to a Model: defaults filled in, tokens and projector sizes derived.
//
// Keys are Hugging Face's config.json keys where it has one. For encoders:
//   patches              (image_size / patch_size)^2
//   tokens_per_tile      patches + class_token
//   output_tokens        patches * pixel_shuffle^2          pixel_shuffle = 1 unless given
//   projector input      hidden_size / pixel_shuffle^2      "linear": one GEMM, "mlp2": two
//   spatial_merge_size   m^2 tokens become one, in pictures of any size; the projector's input is
//                        hidden_size * m^2
//
// Blocks that differ (block_reader.hpp) become kinds of block.
#pragma once

#include <string>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "sim/world/model.hpp"

namespace mllmsim::scenarios {

Model read_model(const Node& table, const std::string& key, Problems& problems);

}  // namespace mllmsim::scenarios
