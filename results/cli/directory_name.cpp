#include "results/cli/directory_name.hpp"

#include "sim/base/hash.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::cli {

std::string directory_name(const std::string& name, const std::vector<std::string>& parts) {
  std::string out = printable(name);
  for (const std::string& part : parts) {
    out += '+';
    for (const char c : printable(part)) out += c == '/' || c == '\\' || c == ' ' ? '_' : c;
  }
  constexpr std::size_t kLongest = 200;  // of the 255 bytes that file systems allow
  if (out.size() > kLongest) out = out.substr(0, kLongest - 17) + "+" + hash_text(out);
  return out;
}

}  // namespace mllmsim::cli
