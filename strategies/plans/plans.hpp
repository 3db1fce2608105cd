// The strategies of this folder.
#pragma once

#include "strategies/job/strategy.hpp"

namespace mllmsim::plans {

Strategy baseline_strategy();
Strategy balanced_strategy();
Strategy zero3_strategy();
Strategy fsdp_strategy();

}  // namespace mllmsim::plans
