// Text to tree. The only place that sees toml++.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

// All of a file of at most 1 MiB. A file that is not there, or is no regular file, is the user's
// fault; one that cannot be read, the environment's.
std::string read_small_file(const std::filesystem::path& file);

// Throws UserError with file:line:column if it is not TOML.
Node parse_toml(std::string_view text, const std::string& file);
Node parse_toml_file(const std::filesystem::path& file);

// The value of an override: TOML if it is TOML, otherwise a string as it stands.
Node parse_value(const std::string& text, const Position& position);

}  // namespace mllmsim::scenarios
