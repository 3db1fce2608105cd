// Keys as other frameworks and command lines call them, for the message about an unknown key.
#pragma once

#include <string>

namespace mllmsim::scenarios {

// "; did you mean \"data.tokens_per_sample\"?" if the last name of `key` is called so elsewhere or
// has its place in another table; otherwise `near`, what is spelt alike in this one.
std::string key_meant(const std::string& key, std::string near);

}  // namespace mllmsim::scenarios
