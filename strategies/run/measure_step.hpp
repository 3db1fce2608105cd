// One simulated step, measured: what remains of a program and its timeline once they are thrown
// away.
#pragma once

#include <vector>

#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/lower/plan_costs.hpp"
#include "strategies/run/outcome.hpp"

namespace mllmsim::run {

// Devices are replicas x pipeline ranks, in that order.
struct MeasuredStep {
  std::int64_t step = 0;
  Time span{};
  std::uint64_t digest = 0;      // of its events
  std::vector<Time> busy;        // by device
  std::vector<Bubbles> bubbles;  // by device
  std::vector<Bytes> peaks;      // activations, by device
  // Of one micro-batch through all chunks of a pipeline rank, mean over micro-batches.
  std::vector<Seconds> forward, backward;
  // Most that forwards leave for backwards, by pipeline rank; none if times are given.
  std::vector<Bytes> saved;
  lower::PlanCosts::Sum work;
  std::vector<StepFigures> replicas;
  // Of a step to be shown; memory without what is held all step long.
  std::vector<Span> spans;
  std::vector<MemoryChange> memory;
  std::vector<PathPart> path;
};

// What is kept of a step besides its figures.
struct ShownStep {
  bool timeline = false;  // spans and memory
  bool critical_path = false;
};

// plan.micro_batches are those of `step`.
MeasuredStep measure_step(const Job& job, const Plan& plan, const CostContext& costs,
                          std::int64_t step, const ShownStep& shown);

// The only step of a job whose times are given.
MeasuredStep measure_given_step(const Job& job, const Plan& plan, const ShownStep& shown);

}  // namespace mllmsim::run
