// Words of the command line, one per line: key=value, as run takes them.
#include "scenarios/read/scenario.hpp"
#include "sim/base/text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  std::vector<std::string> words;
  for (std::string_view rest = bytes; !rest.empty();) words.emplace_back(take_line(rest));
  scenarios::read_scenario_text(kSmallRun, "run", words);
}

const Registered kTarget("override", read);

}  // namespace
}  // namespace mllmsim::fuzz
