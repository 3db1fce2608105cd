// Wrong options of every strategy, as a user sees them: place, key, what was expected. The small
// run has tp 2, pp 2 and 2 + 4 blocks.
#include <gtest/gtest.h>

#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
namespace {

// What is said of one option given on the command line.
std::string refused(const std::string& strategy, const std::string& option,
                    std::vector<std::string> others = {}) {
  others.insert(others.begin(), {"strategy.name=" + strategy, "strategy." + option});
  const std::string found = problems_with(others);
  const std::string place = "command line: strategy." + option + ": ";
  return found.starts_with(place) ? found.substr(place.size()) : found;
}

TEST(StrategyOptions, NumbersHaveRanges) {
  EXPECT_EQ(refused("test-strategy", "count=6"),
            "strategy.count: expected a whole number from -5 to 5, found 6");
  EXPECT_EQ(refused("test-strategy", "ratio=-0.1"),
            "strategy.ratio: expected a number from 0 to 1, found -0.1");
  EXPECT_EQ(refused("test-strategy", "ratio=nan"), "strategy.ratio: expected a number, found nan");
}

TEST(StrategyOptions, ListsHaveSizesAndRanges) {
  EXPECT_EQ(refused("test-strategy", "list=[1, 2, 3, 4]"),
            "strategy.list: expected a list from 0 to 3 long, found 4 numbers");
  EXPECT_EQ(refused("test-strategy", "list=[1, 0]"),
            "strategy.list: expected whole numbers from 1 to 9, found 0");
}

TEST(StrategyOptions, AreFoundInTheFile) {
  std::string run = kSmallRun;
  const std::string name = "name = \"test-strategy\"\n";
  run.replace(run.find(name), name.size(), "name = \"omnibal\"\nradius = 11\n");
  EXPECT_EQ(problems_in(run),
            "run.toml:43:10: strategy.radius: expected a whole number from 0 to 10, found 11");
}

TEST(StrategyOptions, Omnibal) {
  EXPECT_EQ(refused("omnibal", "radius=-1"),
            "strategy.radius: expected a whole number from 0 to 10, found -1");
  EXPECT_EQ(refused("omnibal", "simulated=0"),
            "strategy.simulated: expected a whole number from 1 to 1000000, found 0");
  EXPECT_EQ(refused("omnibal", "packing=best_fit"),
            "strategy.packing: expected \"isf\" or \"best-fit\", found \"best_fit\"; did you mean "
            "\"best-fit\"?");
  EXPECT_EQ(refused("omnibal", "search=all"),
            "strategy.search: expected \"paper\" or \"exact\", found \"all\"");
  EXPECT_EQ(refused("omnibal", "memory=1"), "strategy.memory: expected true or false, found 1");
}

TEST(StrategyOptions, Optimus) {
  for (const char* strategy : {"optimus", "omnibal+optimus"}) {
    EXPECT_EQ(refused(strategy, "schedule=corse"),
              "strategy.schedule: expected \"fine\" or \"coarse\", found \"corse\"; did you mean "
              "\"coarse\"?");
    EXPECT_EQ(refused(strategy, "memory_overhead_limit=-0.1"),
              "strategy.memory_overhead_limit: expected a number from 0 to 1000, found -0.1");
    EXPECT_EQ(refused(strategy, "encoder_tensor_model_parallel_size=-1"),
              "strategy.encoder_tensor_model_parallel_size: expected a whole number from 0 to "
              "1000000, found -1");
    EXPECT_EQ(refused(strategy, "encoder_tensor_model_parallel_size=4"),
              "strategy.encoder_tensor_model_parallel_size: expected 0 or a divisor of the LLM's "
              "2, found 4");
    EXPECT_EQ(refused(strategy, "encoder_pipeline_model_parallel_size=3"),
              "strategy.encoder_pipeline_model_parallel_size: expected 0 or a divisor of the LLM's "
              "2, found 3");
  }
}

// Embedding, two blocks and projector are four layers.
TEST(StrategyOptions, EncoderStagesEachHaveALayer) {
  EXPECT_EQ(refused("optimus", "encoder_pipeline_model_parallel_size=8",
                    {"parallelism.pipeline_model_parallel_size=8",
                     "parallelism.tensor_model_parallel_size=1", "model.llm.num_hidden_layers=8"}),
            "strategy.encoder_pipeline_model_parallel_size: expected at most the encoders' 4 "
            "layers, found 8");
}

TEST(StrategyOptions, Baseline) {
  EXPECT_EQ(refused("baseline", "partition=even"),
            "strategy.partition: expected \"parameters\", \"layers\", \"encoder_stage\" or "
            "\"given\", found \"even\"");
  const std::vector<std::string> given = {"strategy.partition=given"};
  EXPECT_EQ(refused("baseline", "layers_per_stage=[6, 0]", given),
            "strategy.layers_per_stage: expected whole numbers from 1 to 1000000, found 0");
  EXPECT_EQ(refused("baseline", "layers_per_stage=[3, 4]", given),
            "strategy.layers_per_stage: expected 2 numbers (one per model stage) that add up to 6 "
            "transformer blocks, found 2 that add up to 7");
  EXPECT_EQ(refused("baseline", "layers_per_stage=[2, 4]", given), "");
}

}  // namespace
}  // namespace mllmsim::test
