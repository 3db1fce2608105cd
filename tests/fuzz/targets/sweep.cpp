// A [sweep] table, and lists and ranges of --vary: all points must be countable, the first and the
// last readable as overrides.
#include "scenarios/sweeps/sweep.hpp"

#include "scenarios/read/scenario.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void use(const scenarios::Sweep& sweep) {
  if (sweep.points() == 0) throw std::logic_error("a sweep without points");
  for (const std::size_t point : {std::size_t{0}, sweep.points() - 1})
    attempt([&] { scenarios::read_scenario_text(kSmallRun, "run", sweep.overrides(point)); });
  scenarios::to_toml(sweep.description());
}

void read(const std::string& bytes) {
  attempt([&] { use(scenarios::read_sweep(scenarios::parse_toml(bytes, "run"), {}, {})); });
  use(scenarios::read_sweep({}, {bytes}, "all"));
}

const Registered kTarget("sweep", read);

}  // namespace
}  // namespace mllmsim::fuzz
