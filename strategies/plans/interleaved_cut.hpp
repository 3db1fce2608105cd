// Layers cut into virtual stages for the shortest step.
//
// A rank holds every pp-th of V * pp stages. Which of the many cuts whose largest stage is smallest
// adds up well, within a round of the ranks and over a rank's stages, no rule of thumb says: with a
// layer or two per stage the step differs by a tenth among them. So several starts (evened out by
// dynamic programming in different ways) are each improved by moving single layers from stage to
// stage while the estimated step (turn_graph.hpp) gets shorter, and of what is found the one with
// the shortest simulated step is taken. What is found is a minimum, not a tie: a small change of
// costs changes the step as little.
#pragma once

#include <functional>
#include <vector>

#include "sim/kernel/schedule.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::plans {

// Sizes of the model stages. `step_time` simulates a cut.
std::vector<std::size_t> interleaved_cut(
    const Job& job, const CostContext& costs, const std::vector<Layer>& layers,
    const MicroBatch& mb, const std::function<Time(const std::vector<std::size_t>&)>& step_time);

}  // namespace mllmsim::plans
