// Text to tree. The only place that sees toml++.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

// Throws UserError with file:line:column if it is not TOML.
Node parse_toml(std::string_view text, const std::string& file);
// Of a file of at most 1 MiB; throws what read_file() does.
Node parse_toml_file(const std::filesystem::path& file);

// The value of an override: TOML if it is TOML, otherwise a string as it stands. Throws UserError
// if it is not UTF-8, which no TOML is: what is read must be writable.
Node parse_value(const std::string& text, const Position& position);

}  // namespace mllmsim::scenarios
