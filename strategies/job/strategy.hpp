// A strategy: a name, a line of text, options, and a function that turns a job and the cost of its
// layers into a Plan. It never touches a timeline. Each is defined in one .cpp and listed in
// strategies/registry/.
#pragma once

#include <string>
#include <vector>

#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/options.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim {

struct Strategy {
  std::string name;
  std::string description;  // one line
  std::vector<OptionSpec> options;
  // The job has all options, each within its range. UserError if the strategy cannot do the job.
  Plan (*plan)(const Job&, const CostContext&);
  // What is wrong between the options and the rest of the job, which no range can say; each problem
  // has the option's key ("strategy.radius") and no place. Null: nothing can be.
  std::vector<Problem> (*check)(const Job&) = nullptr;
};

// The default value of every option of the strategy that is not set.
void set_defaults(const Strategy& strategy, Options& options);

// All that is wrong with the job's options: unknown, of another type, out of range, or at odds with
// the rest of the job. Options that are not set count as their defaults.
std::vector<Problem> option_problems(const Strategy& strategy, Job job);

// Plans with this strategy, whatever job.strategy says; options that are not set are the defaults.
// UserError if option_problems() finds any.
Plan make_plan(const Strategy& strategy, Job job, const CostContext& costs);

}  // namespace mllmsim
