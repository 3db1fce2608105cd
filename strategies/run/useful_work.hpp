// What a training run is for: FLOPs and tokens of the samples themselves, as long as they are.
// Padding is not useful, nor is the empty tile that a text-only sample carries.
#pragma once

#include "strategies/data/batching.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::run {

struct UsefulWork {
  Flops flops{};
  double tokens = 0;  // of the LLM
};

// Of all replicas in these steps of a pass.
UsefulWork useful_work(const Job& job, const data::Batches& pass,
                       const std::vector<std::int64_t>& steps);

}  // namespace mllmsim::run
