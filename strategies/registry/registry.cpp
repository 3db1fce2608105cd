#include "strategies/registry/registry.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/omnibal/omnibal.hpp"
#include "strategies/optimus/optimus.hpp"
#include "strategies/plans/plans.hpp"

namespace mllmsim {
namespace {

std::vector<Strategy> shipped() {
  return {
      plans::balanced_strategy(),  plans::baseline_strategy(),          plans::fsdp_strategy(),
      omnibal::omnibal_strategy(), optimus::omnibal_optimus_strategy(), optimus::optimus_strategy(),
      plans::zero3_strategy(),
  };
}

bool by_name(const Strategy& a, const Strategy& b) { return a.name < b.name; }

std::vector<Strategy>& registry() {
  static std::vector<Strategy> all = [] {
    std::vector<Strategy> list = shipped();
    std::sort(list.begin(), list.end(), by_name);
    return list;
  }();
  return all;
}

}  // namespace

const std::vector<Strategy>& strategies() { return registry(); }

const Strategy* find_strategy(const std::string& name) {
  for (const Strategy& s : registry())
    if (s.name == name) return &s;
  return nullptr;
}

void register_strategy(Strategy strategy) {
  check(!find_strategy(strategy.name), "two strategies are named " + strategy.name);
  check(strategy.plan != nullptr, "a strategy has a function that plans");
  auto& all = registry();
  const auto at = std::upper_bound(all.begin(), all.end(), strategy, by_name);
  all.insert(at, std::move(strategy));
}

Plan make_plan(const Job& job, const CostContext& costs) {
  const Strategy* strategy = find_strategy(job.strategy);
  if (!strategy) throw UserError("", "strategy", "no strategy named \"" + job.strategy + "\"");
  return make_plan(*strategy, job, costs);
}

}  // namespace mllmsim
