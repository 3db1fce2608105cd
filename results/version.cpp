#include "results/version.hpp"

namespace mllmsim {

std::string_view version() { return MLLMSIM_VERSION; }

}  // namespace mllmsim
