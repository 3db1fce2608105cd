// A calibration: read, shown, written and read again.
#include "cost_models/calibration/calibration.hpp"

#include <sstream>

#include "cost_models/fit/show.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const costs::Calibration calibration = costs::parse_calibration(bytes, "calibration.json");
  std::ostringstream shown;
  fit::show(calibration, shown);
  const std::string written = costs::to_json(calibration);
  if (costs::to_json(costs::parse_calibration(written, "again.json")) != written)
    throw std::logic_error("a calibration that is another one when read again");
}

const Registered kTarget("calibration", read);

}  // namespace
}  // namespace mllmsim::fuzz
