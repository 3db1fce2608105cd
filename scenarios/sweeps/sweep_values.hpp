// Lists and ranges of values as a sweep writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

// "A..B" by ones, "A..B+S" in steps of S, "A..B*F" in factors of F, both ends included if they are
// met; all integers if A, B and the step are. With a unit behind ("100..400*2 Gb/s") the values are
// quantities. Null if the text is no range. Throws UserError if it is one that never ends, is empty
// or is too long.
std::optional<std::vector<Node>> range_values(std::string_view text, const Position& position);

// "a, b..c, [d, e]": elements between commas outside brackets and quotes; each a range or a value.
std::vector<Node> listed_values(std::string_view text, const Position& position);

}  // namespace mllmsim::scenarios
