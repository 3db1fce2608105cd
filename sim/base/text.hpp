// Words in and out: trimming what was written, and "did you mean ...?", the known name nearest to
// it by edit distance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mllmsim {

// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean \"x\"?", or "" if nothing known is near. The first of equally near names wins.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& known);

// "a", "b" or "c"
std::string one_of(const std::vector<std::string>& names);

}  // namespace mllmsim
