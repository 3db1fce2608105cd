// How results name files, so that they say nothing of the machine they were made on: a shipped file
// relative to data_directory(), another without the directories of an absolute path. Relative paths
// stay as they were written.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

std::string portable_name(const std::string& file);

// A message with each absolute path in it by its portable name. A path begins a word and ends
// before ": ", "; ", ", ", a quote or the end.
std::string portable_message(std::string_view message);

// A scenario as canonical TOML, every file in it by its portable name. Texts for people stay.
std::string portable_text(const Node& tree);

}  // namespace mllmsim::scenarios
