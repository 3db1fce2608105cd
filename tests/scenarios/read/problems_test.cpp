// Golden error texts: what a user sees, whole.
#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

std::string changed(const std::string& from, const std::string& to) {
  std::string run = kSmallRun;
  run.replace(run.find(from), from.size(), to);
  return problems_in(run);
}

TEST(Problems, TheSmallRunHasNone) { EXPECT_EQ(problems_in(kSmallRun), ""); }

TEST(Problems, AllAtOnce) {
  EXPECT_EQ(problems_with({"cluster.nic_bandwidth=200", "parallelism.zero_stage=4",
                           "data.sampels=3", "strategy.name=test_strategy", "seed=-1"}),
            "command line: seed=-1: seed: expected a whole number of at least 0, found -1\n"
            "command line: data.sampels=3: data.sampels: unknown key; did you mean \"samples\"?\n"
            "command line: strategy.name=test_strategy: strategy.name: no strategy named "
            "\"test_strategy\"; did you mean \"test-strategy\"?\n"
            "command line: parallelism.zero_stage=4: parallelism.zero_stage: expected 0, 1, 2 or "
            "3, found 4\n"
            "command line: cluster.nic_bandwidth=200: cluster.nic_bandwidth: expected a bandwidth "
            "with its unit, such as \"200 Gb/s\", found 200, a bare number that could mean any "
            "unit");
}

TEST(Problems, FromTopToBottom) {
  const std::string found = problems_in("seed = 'x'\nrecompute = 1\ngranularity = 'kernal'");
  const std::size_t seed = found.find("run.toml:1:8: seed");
  const std::size_t recompute = found.find("run.toml:2:13: recompute");
  const std::size_t granularity = found.find("run.toml:3:15: granularity");
  EXPECT_LT(seed, recompute);
  EXPECT_LT(recompute, granularity);
  EXPECT_NE(granularity, std::string::npos);
}

TEST(Problems, UnknownKeyHasAPosition) {
  EXPECT_EQ(changed("tensor_model_parallel_size", "tensor_parallel_size"),
            "run.toml:31:24: parallelism.tensor_parallel_size: unknown key; did you mean "
            "\"parallelism.tensor_model_parallel_size\"?");
}

TEST(Problems, MissingKeyPointsAtItsTable) {
  EXPECT_EQ(changed("hidden_size = 64\n", ""),
            "run.toml:4:1: model.llm.hidden_size: missing, and it has no default");
}

TEST(Problems, MissingTables) {
  EXPECT_EQ(problems_in("seed = 1"),
            "run.toml:1:1: model: missing: name one (`mllmsim list` shows them) or write it out\n"
            "run.toml:1:1: data.tokens_per_sample: missing, and it has no default\n"
            "run.toml:1:1: data.samples: missing: give it, or tokens for the whole run\n"
            "run.toml:1:1: parallelism.global_batch_size: missing, and it has no default\n"
            "run.toml:1:1: cluster: missing: name one (`mllmsim list` shows them) or write it out");
}

TEST(Problems, WrongType) {
  EXPECT_EQ(changed("nodes = 1", "nodes = \"one\""),
            "run.toml:23:9: cluster.nodes: expected a positive whole number, found \"one\"");
  EXPECT_EQ(changed("nodes = 1", "nodes = 1.0"),
            "run.toml:23:9: cluster.nodes: expected a positive whole number, found 1.0");
  EXPECT_EQ(problems_with({"parallelism.sequence_parallel=yes"}),
            "command line: parallelism.sequence_parallel=yes: parallelism.sequence_parallel: "
            "expected true or false, found \"yes\"");
  EXPECT_EQ(problems_with({"data=7"}), "command line: data=7: data: expected a table, found 7");
}

TEST(Problems, WrongUnit) {
  EXPECT_EQ(changed("\"80 GiB\"", "\"80 Gb/s\""),
            "run.toml:25:14: cluster.gpu_memory: expected a memory size such as \"80 GiB\", found "
            "\"80 Gb/s\", which is a bandwidth");
}

TEST(Problems, SizesMustBePositive) {
  EXPECT_EQ(problems_with({"model.llm.vocab_size=0"}),
            "command line: model.llm.vocab_size=0: model.llm.vocab_size: expected a positive whole "
            "number, found 0");
  EXPECT_EQ(problems_with({"cluster.nodes=99999999999"}),
            "command line: cluster.nodes=99999999999: cluster.nodes: expected a whole number of at "
            "most 100000, found 99999999999");
  EXPECT_EQ(problems_with({"data.samples=nan"}),
            "command line: data.samples=nan: data.samples: expected a number of at least 1, found "
            "nan");
}

TEST(Problems, ChoicesAreListed) {
  EXPECT_EQ(problems_with({"recompute=ful"}),
            "command line: recompute=ful: recompute: expected \"none\", \"selective\" or \"full\", "
            "found \"ful\"; did you mean \"full\"?");
}

TEST(Problems, StrategyOptions) {
  EXPECT_EQ(
      problems_with({"strategy.mode=fin"}),
      "command line: strategy.mode=fin: strategy.mode: expected \"coarse\" or \"fine\", found "
      "\"fin\"; did you mean \"fine\"?");
  EXPECT_EQ(problems_with({"strategy.conut=2"}),
            "command line: strategy.conut=2: strategy.conut: unknown key; did you mean \"count\"?");
  EXPECT_EQ(problems_with({"strategy.count=many"}),
            "command line: strategy.count=many: strategy.count: expected a whole number, found "
            "\"many\"");
}

TEST(Problems, WorldSizeMustDivide) {
  EXPECT_EQ(problems_with({"parallelism.pipeline_model_parallel_size=3"}),
            "run.toml:30:1: parallelism: the cluster's 8 GPUs do not divide by "
            "tensor_model_parallel_size 2 x pipeline_model_parallel_size 3 = 6");
  EXPECT_EQ(problems_with({"parallelism.data_parallel_size=4"}),
            "command line: parallelism.data_parallel_size=4: parallelism.data_parallel_size: "
            "expected 8 GPUs / (tp x pp) = 2, found 4");
}

TEST(Problems, GlobalBatchMustDivide) {
  EXPECT_EQ(problems_with({"parallelism.global_batch_size=7"}),
            "command line: parallelism.global_batch_size=7: parallelism.global_batch_size: "
            "expected a multiple of micro_batch_size 1 x data parallel 2 = 2, found 7");
}

// The small run has 2 replicas and micro-batches of 1: 3 steps of accumulation are 6 samples.
TEST(Problems, AccumulationStandsForTheGlobalBatch) {
  const std::string steps = "parallelism.gradient_accumulation_steps=3";
  EXPECT_EQ(read_text_scenario(kSmallRun, {steps}).job.parallelism.global_batch_size, 6);
  const std::string line = "global_batch_size = ";
  std::string both = kSmallRun;
  both.insert(both.find(line), "gradient_accumulation_steps = 3\n");
  EXPECT_NE(problems_in(both).find("give either this or global_batch_size"), std::string::npos);
}

TEST(Problems, InterleavedSchedule) {
  EXPECT_EQ(
      problems_with({"parallelism.virtual_pipeline_stages=2", "parallelism.global_batch_size=6"}),
      "command line: parallelism.virtual_pipeline_stages=2: "
      "parallelism.virtual_pipeline_stages: the interleaved schedule needs a multiple of "
      "pipeline_model_parallel_size 2 micro-batches, found 3");
  EXPECT_EQ(problems_with({"parallelism.virtual_pipeline_stages=2",
                           "parallelism.pipeline_model_parallel_size=1"}),
            "command line: parallelism.virtual_pipeline_stages=2: "
            "parallelism.virtual_pipeline_stages: the interleaved schedule needs "
            "pipeline_model_parallel_size above 1");
}

TEST(Problems, MoreStagesThanLayers) {
  EXPECT_EQ(problems_with({"parallelism.virtual_pipeline_stages=4"}),
            "run.toml:32:32: parallelism.pipeline_model_parallel_size: 2 pipeline stages x 4 "
            "virtual stages are more than the model's 6 layers");
}

TEST(Problems, HeadsMustSplitUnlessPadded) {
  EXPECT_EQ(problems_with({"model.llm.num_attention_heads=1"}),
            "run.toml:31:30: parallelism.tensor_model_parallel_size: 2 does not divide "
            "model.llm.num_attention_heads 1; see uneven_heads");
  EXPECT_EQ(problems_with({"model.llm.num_attention_heads=1", "model.llm.uneven_heads=\"pad\""}),
            "");
  EXPECT_EQ(problems_with({"model.llm.num_key_value_heads=1"}), "");  // both ranks have it
}

TEST(Problems, Zero3HasNoPipeline) {
  EXPECT_EQ(problems_with({"parallelism.zero_stage=3"}),
            "command line: parallelism.zero_stage=3: parallelism.zero_stage: 3 needs "
            "pipeline_model_parallel_size 1, found 2");
}

TEST(Problems, RecomputedLayersPerStage) {
  EXPECT_EQ(problems_with({"recompute.layers_per_stage=[1]"}),
            "command line: recompute.layers_per_stage=[1]: recompute.layers_per_stage: expected 2 "
            "numbers, one per pipeline stage, found 1");
}

TEST(Problems, ImageTokensArePartOfTheSample) {
  EXPECT_EQ(problems_with({"data.tiles_per_sample=20"}),
            "run.toml:38:21: data.tokens_per_sample: includes image tokens, of which 20 tiles x 4 "
            "from encoder give 80; found 64");
}

TEST(Problems, ProjectorMustEndAtTheLlm) {
  EXPECT_EQ(problems_with({"model.encoders.0.projector=[128, 32]"}),
            "command line: model.encoders.0.projector=[128, 32]: model.encoders.0.projector: "
            "expected to end at the llm's hidden_size 64, found 32");
}

TEST(Problems, UnknownNamesAreSuggested) {
  EXPECT_EQ(
      problems_with({"cluster=h100-8x40", "model.llm=llama-3-8", "seed=x"}),
      "command line: model.llm=llama-3-8: model.llm: no model named \"llama-3-8\"; did you "
      "mean \"llama-3-8b\"?\n"
      "command line: cluster=h100-8x40: cluster: no cluster named \"h100-8x40\"; did you mean "
      "\"h100-8x400\"?\n"
      "command line: seed=x: seed: expected a whole number of at least 0, found \"x\"");
}

TEST(Problems, UnknownFiles) {
  try {
    read_scenario("gpt3-175b-a100x102");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "gpt3-175b-a100x102: no run named \"gpt3-175b-a100x102\"; did you mean "
                 "\"gpt3-175b-a100x1024\"?");
  }
}

}  // namespace
}  // namespace mllmsim::test
