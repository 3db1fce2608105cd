// Where results go if nobody says: a directory named after the run and what was changed in it.
#pragma once

#include <string>
#include <vector>

namespace mllmsim::cli {

// "name+part+part" as one file name: slashes, blanks and control characters of the parts are
// replaced, and of a name longer than file systems allow the end is its hash.
std::string directory_name(const std::string& name, const std::vector<std::string>& parts);

}  // namespace mllmsim::cli
