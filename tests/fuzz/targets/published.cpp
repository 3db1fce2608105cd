// A family of published runs and its CSV file, which follows a line of dashes.
#include "scenarios/families/published.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  constexpr std::string_view kLine = "\n----\n";
  const std::size_t end = bytes.find(kLine);
  scratch_file("points.csv", end == std::string::npos ? "" : bytes.substr(end + kLine.size()));
  scenarios::read_published(scratch_file("family.toml", bytes.substr(0, end)), {}, scratch());
}

const Registered kTarget("published", read);

}  // namespace
}  // namespace mllmsim::fuzz
