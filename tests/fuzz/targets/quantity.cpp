// Quantities with units, and the small texts of the command line.
#include "scenarios/tree/quantity.hpp"

#include <cmath>

#include "cost_models/calibrate/plan.hpp"
#include "results/charts/lanes.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  using namespace scenarios;
  for (const Dimension* dimension : {&kMemorySize, &kBandwidth, &kDuration, &kComputeRate}) {
    const ParsedQuantity parsed = parse_quantity(bytes, *dimension);
    if (parsed.problem.empty() && !std::isfinite(parsed.value))
      throw std::logic_error("a quantity that is not finite");
  }
  const Node value = parse_value(bytes, {"command line", 0, 0});
  if (parse_value(to_inline_toml(value), {}) != value && !value.is<double>())
    throw std::logic_error("a value that is another one when read again");
  const std::string shown = printable(bytes);
  if (shown != printable(shown)) throw std::logic_error("text that is not printable");
  attempt([&] { charts::parse_ranks(bytes); });
  attempt([&] { charts::parse_zoom(bytes); });
  attempt([&] { calibrate::parse_model(bytes); });
}

const Registered kTarget("quantity", read);

}  // namespace
}  // namespace mllmsim::fuzz
