// Tensors that exist only at the end of a step, when activations are gone, and what a backward
// leaves room for: copies of gradients to reduce, check and update them.
#pragma once

#include <vector>

#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::step {

struct StepEnd {
  // One after the other: tensors that are there at the same time.
  std::vector<std::vector<Bytes>> phases;
  std::size_t reducing = 0;  // so many of them, the first, while replicas reduce gradients
  Bytes after_backward{};    // of every micro-batch, while its gradients are added up

  Bytes most() const;
  Bytes while_reducing() const;
  Bytes while_updating() const;
};

// Of a pipeline rank that trains so many parameters per GPU and holds so much of the optimizer.
StepEnd step_end(const Job& job, const std::vector<Chunk>& chunks, std::int64_t trained,
                 Bytes optimizer);

}  // namespace mllmsim::step
