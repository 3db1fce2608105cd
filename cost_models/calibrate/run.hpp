// Carries out a plan: what the file does not have yet is measured and appended.
//
// With several nodes, every node runs the same plan: node 0 decides and writes, the others follow
// through the tasks that span nodes (Backend::agree) and leave the rest to node 0.
#pragma once

#include "cost_models/calibrate/plan.hpp"
#include "cost_models/calibrate/raw_file.hpp"
#include "sim/base/progress.hpp"

namespace mllmsim::calibrate {

// file: null on nodes other than 0. Returns how many measurements were made here.
int run_plan(const Plan& plan, Backend& backend, RawFile* file, Progress& progress,
             const Clock& now);

// Those of plan.tasks that `file` lacks.
std::vector<Task> remaining(const Plan& plan, const RawFile& file);

}  // namespace mllmsim::calibrate
