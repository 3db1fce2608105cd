#include "strategies/job/strategy.hpp"

#include <algorithm>

namespace mllmsim {

void set_defaults(const Strategy& strategy, Options& options) {
  for (const OptionSpec& spec : strategy.options)
    options.try_emplace(spec.name, spec.default_value);
}

std::vector<Problem> option_problems(const Strategy& strategy, Job job) {
  std::vector<Problem> out;
  for (const auto& [name, value] : job.options) {
    const std::string key = "strategy." + name;
    const auto spec =
        std::find_if(strategy.options.begin(), strategy.options.end(),
                     [&wanted = name](const OptionSpec& s) { return s.name == wanted; });
    if (spec == strategy.options.end())
      out.push_back({"", key, strategy.name + " has no such option"});
    else if (value.index() != spec->default_value.index())
      out.push_back({"", key, "expected a value of another type"});
    else if (std::string problem = problem_with(*spec, value); !problem.empty())
      out.push_back({"", key, std::move(problem)});
  }
  if (!out.empty() || !strategy.check) return out;
  set_defaults(strategy, job.options);
  return strategy.check(job);
}

Plan make_plan(const Strategy& strategy, Job job, const CostContext& costs) {
  if (std::vector<Problem> problems = option_problems(strategy, job); !problems.empty())
    throw UserError(std::move(problems));
  set_defaults(strategy, job.options);
  job.strategy = strategy.name;
  return strategy.plan(job, costs);
}

}  // namespace mllmsim
