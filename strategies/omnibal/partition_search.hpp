// Balanced partition (OmniBal, arXiv 2407.20761): cuts the layers into stages of equal forward time
// that send little.
//
//   anchor       greedy: a stage ends where its forward time is nearest an equal share of the rest
//   candidates   every cut moved by at most r = `radius` layers: (2 r + 1)^(N - 1) for N stages
//   rank         spread of the stages' forward times, ms + activations sent over the cuts, MiB
//   decide       simulate the best `simulated` ones, keep the fastest step
//
// The paper calls the spread VAR, but its figures are standard deviations. The exact search instead
// starts from the cut with the least largest stage (forward, recompute and backward; dynamic
// programming) and moves cuts by one layer while the simulated step gets shorter.
#pragma once

#include <functional>
#include <vector>

#include "sim/base/units.hpp"

namespace mllmsim::omnibal {

// Sizes of consecutive stages.
using Cut = std::vector<std::size_t>;

struct PartitionCosts {
  std::vector<Seconds> forward;  // by layer
  std::vector<Seconds> total;    // forward, recompute and backward
  std::vector<Bytes> boundary;   // sent if the cut is behind this layer
};

struct SearchOptions {
  int radius = 1;
  std::size_t simulated = 15;
};

Cut greedy_cut(const std::vector<Seconds>& forward, std::size_t stages);

// The candidates around the anchor, best rank first.
std::vector<Cut> ranked_cuts(const PartitionCosts& costs, const Cut& anchor, int radius);

using StepTime = std::function<Time(const Cut&)>;  // by simulation

Cut search_cut(const PartitionCosts& costs, std::size_t stages, const SearchOptions& options,
               const StepTime& step_time);
Cut exact_cut(const PartitionCosts& costs, std::size_t stages, const StepTime& step_time);

}  // namespace mllmsim::omnibal
