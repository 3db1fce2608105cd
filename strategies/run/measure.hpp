// Measured steps of a plan -> the figures of the run.
#pragma once

#include "strategies/run/measure_step.hpp"

namespace mllmsim::run {

// peak: of one GPU; not needed if times are given.
Outcome measure(const Job& job, const Plan& plan, std::vector<MeasuredStep> steps,
                FlopsPerSecond peak = {});

}  // namespace mllmsim::run
