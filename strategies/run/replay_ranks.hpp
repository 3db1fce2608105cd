// Every pipeline rank's allocations over the simulated steps, replayed (strategies/step/replay.hpp)
// on the replica where that rank was fullest.
#pragma once

#include "strategies/run/measure_step.hpp"
#include "strategies/step/replay.hpp"

namespace mllmsim::run {

struct ReplayedRank {
  Bytes peak_allocated{}, peak_reserved{};
  std::int64_t retries = 0;
  int replica = 0;
  std::optional<step::RanOut> ran_out;
};

// What of a step's micro-batches is replayed if there is only one step.
std::vector<MicroBatch> replayed_of(const Plan& plan, std::size_t replica);

// One per pipeline rank; none if encoders run beside the pipeline.
std::vector<ReplayedRank> replay_ranks(const Job& job, const Plan& plan,
                                       const costs::LayerCosts& layers,
                                       const std::vector<MeasuredStep>& steps);

}  // namespace mllmsim::run
