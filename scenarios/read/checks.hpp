// What must hold between the parts of a job: sizes that divide, heads that split, schedules that
// exist. Each problem points at the key a user would change.
#pragma once

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::scenarios {

// Transformer blocks of all modules; 0 if there is no model because times are given.
std::int64_t block_count(const Model& model);

// The parts of the job they look at must each be right; `run` is only for positions.
void check_parallelism(const Job& job, const Node& run, Problems& problems);
// The options against the job that the strategy has to plan for.
void check_strategy(const Job& job, const Node& run, Problems& problems);
void check_data(const Job& job, const Node& run, Problems& problems);

}  // namespace mllmsim::scenarios
