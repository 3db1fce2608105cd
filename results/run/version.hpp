// The version of this build, as in the project() line of CMakeLists.txt.
#pragma once

#include <string_view>

namespace mllmsim::results {

std::string_view version();

}  // namespace mllmsim::results
