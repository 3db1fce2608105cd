#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/job/strategy.hpp"

namespace mllmsim {
namespace {

// Filled before main by the Registrations of the strategies; never changed afterwards.
std::vector<StrategyInfo>& registry() {
  static std::vector<StrategyInfo> all;
  return all;
}

}  // namespace

Registration::Registration(StrategyInfo info) {
  auto& all = registry();
  const auto at = std::lower_bound(
      all.begin(), all.end(), info.name,
      [](const StrategyInfo& a, const std::string& name) { return a.name < name; });
  all.insert(at, std::move(info));
}

const std::vector<StrategyInfo>& strategies() { return registry(); }

const StrategyInfo* find_strategy(const std::string& name) {
  for (const StrategyInfo& s : registry())
    if (s.name == name) return &s;
  return nullptr;
}

}  // namespace mllmsim
