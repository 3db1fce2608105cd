// The strategies `optimus` and `omnibal+optimus`.
#pragma once

#include "strategies/job/strategy.hpp"

namespace mllmsim::optimus {

Strategy optimus_strategy();
Strategy omnibal_optimus_strategy();

}  // namespace mllmsim::optimus
