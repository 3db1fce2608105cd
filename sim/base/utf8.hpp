// Which bytes are UTF-8 (RFC 3629): no character longer than it must be, no surrogates, none above
// U+10FFFF.
#pragma once

#include <string_view>

namespace mllmsim {

// Bytes of the character that the text, which is not empty, begins with; 0 if it begins with none.
std::size_t character_length(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace mllmsim
