#include "results/text/json.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "tests/results/example_run.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;
using namespace tables;
namespace {

boost::json::value parsed(const std::vector<RunResult>& runs) {
  return boost::json::parse(to_json(runs));
}

TEST(Json, HasTheRunItsStagesAndItsSteps) {
  const boost::json::value value = parsed({example_run()});
  const boost::json::value& run = value.at("runs").at(0);
  EXPECT_EQ(run.at("run").as_string(), "tiny");
  EXPECT_DOUBLE_EQ(run.at("gpu_days").to_number<double>(), 34.722);
  EXPECT_EQ(run.at("stages").at(1).at("parameters").as_int64(), 1'000'000'001);
  EXPECT_DOUBLE_EQ(run.at("steps").at(1).at("iteration_s").to_number<double>(), 10.5);
  EXPECT_FALSE(run.as_object().contains("spans"));
}

TEST(Json, IsAListForAnyNumberOfRuns) {
  EXPECT_EQ(to_json({}), "{\"runs\": []}\n");
  EXPECT_EQ(parsed({example_run(), example_run()}).at("runs").as_array().size(), 2U);
}

TEST(Json, EscapesTextAndHasNoNumberThatJsonLacks) {
  RunResult run = example_run();
  run.reason = "needs \"more\"\nmemory";
  run.mfu = std::numeric_limits<double>::quiet_NaN();
  const boost::json::value value = parsed({run});
  EXPECT_EQ(value.at("runs").at(0).at("reason").as_string(), "needs \"more\"\nmemory");
  EXPECT_TRUE(value.at("runs").at(0).at("mfu").is_null());
}

TEST(Json, NumbersReadWell) {
  EXPECT_NE(to_json(std::vector<RunResult>{example_run()}).find("\"samples_per_s\": 6.4,\n"),
            std::string::npos);
}

}  // namespace
}  // namespace mllmsim
