#include "sim/base/units.hpp"

#include "sim/base/errors.hpp"

namespace mllmsim {

void throw_too_large() {
  throw UserError("", "",
                  "a step would take longer than 292 years, or more than 8 EiB: check the sizes, "
                  "times and bandwidths of the run, its cluster, software and calibration");
}

}  // namespace mllmsim
