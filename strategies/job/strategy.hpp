// The interface of a strategy, and the registry that `mllmsim list` and the property tests iterate.
//
// A strategy turns a job and the cost of its layers into a Plan; it never touches a timeline. To
// add one, write one .cpp: implement Strategy, list its options, and put a
// `const Registration r{...}` at namespace scope.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/job/cost_context.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim {

struct OptionSpec {
  std::string name;
  std::string description;
  OptionValue default_value;           // its alternative is the option's type
  std::vector<std::string> choices{};  // for strings; empty: any
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Plan plan(const Job& job, const CostContext& costs) const = 0;
};

struct StrategyInfo {
  std::string name;
  std::string description;  // one line
  std::vector<OptionSpec> options;
  std::unique_ptr<Strategy> (*make)();
};

// All registered strategies, by name.
const std::vector<StrategyInfo>& strategies();
const StrategyInfo* find_strategy(const std::string& name);

struct Registration {
  explicit Registration(StrategyInfo info);
};

}  // namespace mllmsim
