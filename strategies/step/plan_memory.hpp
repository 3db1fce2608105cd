// What each pipeline rank of a simulated plan needs on one GPU: model state of its layers (and
// encoders), the peak of its activations, the framework's reserve.
#pragma once

#include "sim/account/memory.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::step {

struct RankState {
  std::int64_t parameters = 0;  // on one GPU
  ModelState state;
};
RankState rank_state(const Job& job, const Plan& plan, int rank);

// Of the fullest GPU. profile: one list per device, see memory_profile.
Bytes peak_memory(const Job& job, const Plan& plan,
                  const std::vector<std::vector<MemoryPoint>>& profile);

}  // namespace mllmsim::step
