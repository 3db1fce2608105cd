// Plan -> Program: the tasks that every simulated device runs in one step.
//
// A device is one pipeline rank of one replica; device = replica * pp + rank. If the plan has a
// single replica it stands for all of them: they do the same at the same time, and shared links
// carry the load of all. Granularity:
//
//   stage    one task per pass through a chunk; one per layer where layers communicate one by one:
//            all passes under zero_stage 3, and with dp > 1 the first forward and the last backward
//            of rank 0's chunk 0 where parameter gathers and gradient reductions overlap them
//   kernel   one task per kernel, tp collectives on their own stream; always so with encoders
//            beside the LLM's pipeline
//
// Durations are sums of the same kernel times, so both granularities take the same time.
//
// The parts, each in its file, add to one StepBuilder: passes, encoder_passes between them,
// pipeline and encoder_transfers, data_parallel, sharded and encoder_collectives, optimizer.
#pragma once

#include <vector>

#include "sim/kernel/kernel_groups.hpp"
#include "sim/kernel/program.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/lower/cost_source.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {

Program to_program(const Job& job, const Plan& plan, const CostSource& source);
// With cost models, where nobody else needs what the plan's micro-batches cost.
Program to_program(const Job& job, const Plan& plan, const CostContext& costs);

// Kernel by kernel, those between points of contact as groups. Not with zero_stage 3, where every
// layer meets others.
struct GroupedProgram {
  Program program;
  KernelGroups groups;
};
bool can_be_grouped(const Job& job, const Plan& plan);
GroupedProgram to_grouped_program(const Job& job, const Plan& plan, const ModelledCosts& costs);

// Where the LLM's passes of the first replica begin and end in a program: [rank][index in its
// schedule]. The compute and tp tasks from first to last are the pass's kernels, in order.
struct PassSpan {
  TaskId first, last;
  TaskId start{};  // what comes before, if anything: the CPU's preparation, the gather of an input
};
struct ProgramWithPasses {
  Program program;
  std::vector<std::vector<PassSpan>> passes;
};
ProgramWithPasses to_program_with_passes(const Job& job, const Plan& plan,
                                         const CostContext& costs);

}  // namespace mllmsim::lower
