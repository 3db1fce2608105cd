// JSON as people look at it too: Boost.JSON prints one line, and 1.25E1 for 12.5.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace mllmsim {

// Indented, ended by a newline. A number that is not finite is null.
std::string pretty(const boost::json::value& value);

}  // namespace mllmsim
