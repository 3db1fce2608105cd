// gzip, through Arrow's codec: no library of our own for one file format.
#pragma once

#include <string>
#include <string_view>

namespace mllmsim::tables {

// The same bytes for the same text. Throws EnvironmentError if this Arrow was built without it.
std::string gzip(std::string_view text);

}  // namespace mllmsim::tables
