// One simulated step, measured: what remains of a program and its timeline once they are thrown
// away.
#pragma once

#include <vector>

#include "results/run/run_result.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/lower/plan_costs.hpp"

namespace mllmsim::results {

// Devices are replicas x pipeline ranks, in that order.
struct StepFigures {
  std::int64_t step = 0;
  Time span{};
  std::vector<Time> busy;        // by device
  std::vector<Bubbles> bubbles;  // by device
  std::vector<Bytes> peaks;      // activations, by device
  // Of one micro-batch through all chunks of a pipeline rank, mean over micro-batches.
  std::vector<Seconds> forward, backward;
  std::vector<Bytes> saved;  // most that forwards leave for backwards, by pipeline rank
  lower::PlanCosts::Sum work;
  std::vector<StepRow> rows;  // one per replica
  // Of a step to be shown; memory without what is held all step long.
  std::vector<SpanRow> spans;
  std::vector<MemoryRow> memory;
  std::vector<PathRow> path;
};

// What is kept of a step besides its figures.
struct ShownStep {
  bool timeline = false;  // spans and memory
  bool critical_path = false;
};

// `costs` is null if times are given. `plan.micro_batches` are those of `step`.
StepFigures simulate_step(const Job& job, const Plan& plan, const CostContext* costs,
                          std::int64_t step, const ShownStep& shown);

}  // namespace mllmsim::results
