// The `calibrate` sub-command.
//
//   calibrate fit RAW... --out FILE [--gpu NAME] [--base FILE] [--describe TEXT]
//   calibrate import nccl|kineto FILE... [--out FILE]
//   calibrate show FILE
//   calibrate scale FILE --gemm 1.04 [--attention F] ... [--out FILE]
//
// Returns 0, 2 (the user's fault) or 3 (the environment's); results to `out`, talk to `err`.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace mllmsim::fit {

int run_calibrate(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace mllmsim::fit
