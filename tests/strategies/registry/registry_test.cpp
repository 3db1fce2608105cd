// The list of strategies, one's own among them, and options checked before a plan is made.
#include "strategies/registry/registry.hpp"

#include <gtest/gtest.h>

#include "tests/strategies/small_job.hpp"

namespace mllmsim {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Strategy& s : strategies()) out.push_back(s.name);
  return out;
}

TEST(Registry, HoldsTheShippedStrategies) {
  EXPECT_EQ(names(), (std::vector<std::string>{"balanced", "baseline", "fsdp", "omnibal",
                                               "omnibal+optimus", "optimus", "zero3"}));
}

TEST(Registry, RefusesANameThatIsTaken) {
  EXPECT_THROW(register_strategy(*find_strategy("baseline")), InternalError);
}

std::string refusal(const Job& job) {
  JobCosts costs(job);
  try {
    make_plan(job, costs.context());
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(MakePlan, OptionsThatAreNotSetAreDefaults) {
  Job job = small_job();
  job.strategy = "omnibal";
  EXPECT_EQ(refusal(job), "");
}

TEST(MakePlan, RefusesWhatAStrategyDoesNotAccept) {
  Job job = small_job();
  job.strategy = "omnibal";
  job.options["radius"] = std::int64_t{11};
  EXPECT_EQ(refusal(job), "strategy.radius: expected a whole number from 0 to 10, found 11");
  job.options = {{"radius", 0.5}};
  EXPECT_EQ(refusal(job), "strategy.radius: expected a value of another type");
  job.options = {{"schedule", std::string("fine")}};
  EXPECT_EQ(refusal(job), "strategy.schedule: omnibal has no such option");
}

}  // namespace
}  // namespace mllmsim
