// "did you mean ...?": the known name nearest to what was written, by edit distance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mllmsim {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean \"x\"?", or "" if nothing known is near. The first of equally near names wins.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& known);

// "a", "b" or "c"
std::string one_of(const std::vector<std::string>& names);

}  // namespace mllmsim
