// The end of the shown step in its memory: copies of gradients that are there while replicas reduce
// them and while the optimizer runs (strategies/step/step_end.hpp), each the most of its time.
#pragma once

#include <vector>

#include "strategies/run/outcome.hpp"
#include "strategies/step/step_end.hpp"

namespace mllmsim::run {

// `memory`: devices one after another, each in the order of time; `ends`: one per pipeline rank.
void add_copies(const std::vector<Span>& spans, const std::vector<step::StepEnd>& ends,
                std::vector<MemoryChange>& memory);

}  // namespace mllmsim::run
