// Records that give what a sample holds instead of how long it is: text, pictures, videos, sound.
// Tokens follow from the model's own encoders (sim/world/image_tokens.hpp), so the same file suits
// every model.
//
//   .jsonl   an object a line; every key is optional but text_tokens:
//            {"text_tokens": 120, "images": [[720, 1280], {"height": 448, "width": 448}],
//             "videos": [{"frames": 32, "height": 360, "width": 640}], "seconds": [12.5]}
//            or, for one picture, "height" and "width" beside text_tokens
//   .csv     columns text_tokens, height, width and, if there are, frames and seconds; empty or 0:
//            none. One picture, video or recording of each kind a line
//
//   tokens of a sample = text_tokens + what every encoder makes of its media
//
// Other keys and columns are passed over.
#pragma once

#include <filesystem>

#include "sim/world/model.hpp"
#include "strategies/data/samples.hpp"

namespace mllmsim::scenarios {

// Whether the file has such records: every .jsonl, and a .csv with a column text_tokens.
bool is_media_file(const std::filesystem::path& file);

// Throws UserError with the file, the line and what is wrong. Pictures in data for a model without
// an encoder for them are wrong too.
data::DataSet read_media(const std::filesystem::path& file, const Model& model);

}  // namespace mllmsim::scenarios
