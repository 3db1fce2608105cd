// Lengths files: one record per sample, `vit_num` tiles and `token_num` LLM tokens, image tokens
// included.
//
//   .json      OmniBal's: [{"vit_num": 5, "token_num": 1359, "image_flags": 5}, ...]
//   .json      a meta file, with paths relative to it:
//              {"SET": {"token_lengths": "FILE", "repeat_time": 0.5}, ...} or {"SET": "FILE"};
//              repeat_time is a set's weight in the mixture: twice all samples, or half of them
//   .csv       the same names in the first line
//   .parquet   64-bit columns of those names (scenarios/parquet, where it is linked)
//
// Other columns and keys are passed over. A million records take about half a second. Each file is
// one set of the result, named in the meta file or after itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strategies/data/samples.hpp"

namespace mllmsim::scenarios {

// Throws UserError with the file, the record or line and what is wrong, the first few problems of a
// file at once.
data::DataSet read_lengths(const std::filesystem::path& file);

// Reads another kind of file, appending to `out`: for files with this extension (".parquet"). Call
// it at start-up, before other threads read scenarios: nothing is locked.
using LengthsReader = void (*)(const std::filesystem::path& file, std::vector<data::Sample>& out);
void register_lengths_format(std::string extension, LengthsReader reader);

// A name ending in .json, .csv or .parquet is a lengths file; any other is a mixture
// (data_mixture.hpp).
bool is_lengths_file(const std::filesystem::path& name);

}  // namespace mllmsim::scenarios
