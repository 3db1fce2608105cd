// A cluster file and its network, and a file of software settings, in an otherwise right run.
#include "scenarios/read/scenario.hpp"
#include "sim/world/network.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const std::string file = scratch_file("part.toml", bytes).string();
  attempt([&] { scenarios::read_scenario_text(kSmallRun, "run", {"software=" + file}); });
  const scenarios::Scenario scenario =
      scenarios::read_scenario_text(kSmallRun, "run", {"cluster=" + file});
  const Network network(scenario.job.cluster);
}

const Registered kTarget("cluster", read);

}  // namespace
}  // namespace mllmsim::fuzz
