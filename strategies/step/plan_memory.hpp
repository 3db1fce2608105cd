// What each pipeline rank of a simulated plan needs on one GPU: model state of its layers (and
// encoders), what the framework and its libraries hold, the peak of its activations.
//
// Layers that ZeRO-3 has gathered are part of the profile of a step. The communicators of a GPU are
// its world's and those of tp, dp and pp that have more than one rank.
#pragma once

#include "sim/account/memory.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/step/step_end.hpp"

namespace mllmsim::step {

struct RankState {
  std::int64_t parameters = 0;  // on one GPU
  Holdings held;
  StepEnd end;  // beside what is held
};
RankState rank_state(const Job& job, const Plan& plan, int rank);

// Of the fullest GPU. profile: one list per device, see memory_profile.
Bytes peak_memory(const Job& job, const Plan& plan,
                  const std::vector<std::vector<MemoryPoint>>& profile);

}  // namespace mllmsim::step
