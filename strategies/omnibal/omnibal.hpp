// The strategy `omnibal`.
#pragma once

#include "strategies/job/strategy.hpp"

namespace mllmsim::omnibal {

Strategy omnibal_strategy();

}  // namespace mllmsim::omnibal
