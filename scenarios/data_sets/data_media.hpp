// Records that give what a sample holds instead of how long it is: text, pictures, videos, sound.
// Tokens follow from the model's own encoders (sim/world/image_tokens.hpp), so the same file suits
// every model.
//
//   .jsonl   an object a line; every key is optional but the text's:
//            {"text_tokens": 120, "images": [[720, 1280], {"height": 448, "width": 448}],
//             "videos": [{"frames": 32, "height": 360, "width": 640}], "seconds": [12.5]}
//            A video may give its seconds instead of frames. One picture may be "height" and
//            "width" beside the text, several "height_list" and "width_list". Without text_tokens
//            the text itself counts, bytes_per_token bytes for one: "conversations", "messages" or
//            "text", as data sets on the Hub and InternVL's annotations have them
//   .csv     columns text_tokens, height, width and, if there are, frames and seconds; empty or 0:
//            none. One picture, video or recording of each kind a line
//   .sqlite  Energon's index of a WebDataset (scenarios/energon, where it is linked)
//
//   tokens of a sample = text_tokens + what every encoder makes of its media
//
// Other keys and columns are passed over.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/data_sets/media_samples.hpp"

namespace mllmsim::scenarios {

// Of English text in the tokenizers of today's models, an estimate.
inline constexpr double kBytesPerToken = 4;

// Whether the file has such records: every .jsonl, and a .csv with a column text_tokens.
bool is_media_file(const std::filesystem::path& file);

// Throws UserError with the file, the line and what is wrong. Pictures in data for a model without
// an encoder for them are wrong too.
data::DataSet read_media(const std::filesystem::path& file, const Model& model,
                         double bytes_per_token = kBytesPerToken);

// Reads another kind of file, by its extension. Call it at start-up, before other threads read
// scenarios: nothing is locked.
using MediaReader = void (*)(const std::filesystem::path& file, MediaSamples& samples,
                             Records& records);
void register_media_format(std::string extension, MediaReader reader);

}  // namespace mllmsim::scenarios
