// A run file, with everything it can name: models, clusters, software, data.
#include "scenarios/read/scenario.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const scenarios::Scenario scenario = scenarios::read_scenario_text(bytes, "run");
  // What was read is read again from its own text, as from a result's metadata.
  const scenarios::Scenario again = scenarios::read_scenario_text(scenario.text, "run");
  if (again.hash != scenario.hash) throw std::logic_error("the text of a scenario is another one");
}

const Registered kTarget("run", read);

}  // namespace
}  // namespace mllmsim::fuzz
