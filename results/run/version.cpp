#include "results/run/version.hpp"

namespace mllmsim::results {

std::string_view version() { return MLLMSIM_VERSION; }

}  // namespace mllmsim::results
