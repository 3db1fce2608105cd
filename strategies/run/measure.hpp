// Measured steps of a plan -> the figures of the run.
#pragma once

#include "strategies/run/measure_step.hpp"
#include "strategies/run/replay_ranks.hpp"

namespace mllmsim::run {

// peak: of one GPU; not needed if times are given. replayed: by pipeline rank, or none.
Outcome measure(const Job& job, const Plan& plan, std::vector<MeasuredStep> steps,
                FlopsPerSecond peak = {}, const std::vector<ReplayedRank>& replayed = {});

}  // namespace mllmsim::run
