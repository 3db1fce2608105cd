// A run file becomes a Job: what is derived, what is merged, what stays canonical.
#include <gtest/gtest.h>

#include <map>

#include "scenarios/read/software_reader.hpp"
#include "sim/base/errors.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

Job job_with(const std::vector<std::string>& overrides) {
  return read_text_scenario(kSmallRun, overrides).job;
}

TEST(Scenario, DataParallelSizeFollowsFromTheCluster) {
  EXPECT_EQ(job_with({}).parallelism.data_parallel_size, 2);                   // 8 / (2 * 2)
  EXPECT_EQ(job_with({"cluster.nodes=2"}).parallelism.data_parallel_size, 4);  // 16 / (2 * 2)
}

TEST(Scenario, MegatronsLayersPerVirtualStage) {
  // 2 + 4 layers over 2 ranks: 3 per rank, so 3 chunks of 1.
  const Job job = job_with({"parallelism.num_layers_per_virtual_pipeline_stage=1"});
  EXPECT_EQ(job.parallelism.virtual_pipeline_stages, 3);
}

TEST(Scenario, NvlinkIsHalvedToOneDirection) {
  EXPECT_EQ(job_with({}).cluster.nvlink_bandwidth.value, 300e9);
}

TEST(Scenario, TokensOfATile) {
  // 8 / 2 = 4 patches per side: 16 and a class token; a shuffle of 0.5 leaves 2 per side.
  const Encoder e = job_with({}).model.encoders[0];
  EXPECT_EQ(e.tokens_per_tile, 17);
  EXPECT_EQ(e.output_tokens_per_tile, 4);
  EXPECT_EQ(e.patch_values, 12);
  EXPECT_EQ(job_with({"model.encoders.0.class_token=false"}).model.encoders[0].tokens_per_tile, 16);
}

TEST(Scenario, ProjectorStartsAtTheShuffledWidth) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(job_with({}).model.encoders[0].projector_sizes, (Sizes{128, 64, 64}));
  EXPECT_EQ(job_with({"model.encoders.0.projector=linear"}).model.encoders[0].projector_sizes,
            (Sizes{128, 64}));
  EXPECT_EQ(
      job_with({"model.encoders.0.projector=[128, 99, 64]"}).model.encoders[0].projector_sizes,
      (Sizes{128, 99, 64}));
}

TEST(Scenario, HeadsAndHeadDimHaveDefaults) {
  const Transformer t = job_with({}).model.llm.blocks;
  EXPECT_EQ(t.num_key_value_heads, 4);
  EXPECT_EQ(t.head_dim, 16);
  EXPECT_TRUE(t.causal);
}

TEST(Scenario, SamplesFromTokens) {
  std::string run = kSmallRun;
  run.replace(run.find("samples = 100"), 13, "tokens = 6400");
  EXPECT_EQ(read_text_scenario(run).job.data.samples, 100);
}

TEST(Scenario, RecomputeByNameOrByModule) {
  const Job full = job_with({"recompute=full"});
  EXPECT_EQ(full.recompute.encoder, Recompute::full);
  EXPECT_EQ(full.recompute.llm, Recompute::full);
  const Job one = job_with({"recompute.llm=selective", "recompute.layers_per_stage=[0, 1]"});
  EXPECT_EQ(one.recompute.encoder, Recompute::none);
  EXPECT_EQ(one.recompute.llm, Recompute::selective);
  EXPECT_EQ(one.recompute.layers_per_stage, (std::vector<int>{0, 1}));
}

TEST(Scenario, OptionsAreGivenOnesOverDefaults) {
  const Options options = job_with({"strategy.mode=fine", "strategy.ratio=1"}).options;
  EXPECT_EQ(options.at("mode"), OptionValue(std::string("fine")));
  EXPECT_EQ(options.at("ratio"), OptionValue(1.0));
  EXPECT_EQ(options.at("count"), OptionValue(std::int64_t{3}));
  EXPECT_EQ(options.size(), 5u);
}

TEST(Scenario, SoftwareQuantities) {
  EXPECT_EQ(job_with({"software.memory_reserve=1 GiB"}).software.memory_reserve.value, 1LL << 30);
}

TEST(Scenario, SoftwareKeysHaveRanges) {
  EXPECT_EQ(job_with({"software.ddp_bucket_size=1000"}).software.bucket_parameters(1), 1'000'000);
  for (const char* wrong :
       {"ddp_bucket_size=0", "ddp_bucket_size_per_replica=-1", "tp_overlap_pieces=0",
        "make_vocab_size_divisible_by=0", "fused_softmax_matrices=0", "grad_bytes_per_parameter=65",
        "sharded_grad_bytes_per_parameter=-1", "flash_attention_generation=4"})
    EXPECT_THROW(job_with({std::string("software.") + wrong}), UserError) << wrong;
}

TEST(Scenario, SoftwareSettingsSayWhereTheyComeFrom) {
  Node table;
  table.as<Node::Table>()["name"].value = std::string("megatron-2021");
  table.as<Node::Table>()["dropout"].value = true;
  std::map<std::string, std::string> shown;
  for (const SoftwareSetting& s : software_settings(table)) {
    EXPECT_FALSE(s.source.empty()) << s.key;
    shown[s.key] = s.value + ": " + s.source;
  }
  EXPECT_EQ(shown["dropout"], "true: megatron-2021, or the scenario over it");
  EXPECT_EQ(shown["memory_reserve"], "\"0 GiB\": assumption: nothing else is on the GPU");
}

// What is printed as a default reads back as that default.
TEST(Scenario, SoftwareDefaultsAreWrittenAsScenariosWriteThem) {
  std::vector<std::string> all;
  for (const SoftwareSetting& s : software_settings({}))
    all.push_back("software." + s.key + "=" + s.value);
  const Software read = job_with(all).software, none;
  EXPECT_EQ(read.ddp_bucket_size, none.ddp_bucket_size);
  EXPECT_EQ(read.memory_reserve, none.memory_reserve);
  EXPECT_DOUBLE_EQ(read.host_time_per_kernel.value, none.host_time_per_kernel.value);
}

TEST(Scenario, GivenTimesNeedNeitherModelNorCluster) {
  const Scenario s = read_text_scenario(R"(
    parallelism = { pipeline_model_parallel_size = 12, global_batch_size = 24 }
    strategy = "test-strategy"
    [given_times]
    forward = "2 ms"
    backward = "4 ms")");
  EXPECT_EQ(s.job.cluster.gpus(), 12);  // 2 nodes of 6
  EXPECT_EQ(s.job.cluster.nodes, 2);
  EXPECT_EQ(s.job.parallelism.micro_batches(), 24);
  EXPECT_DOUBLE_EQ(s.job.given_times->backward.at(0).value, 4e-3);
  EXPECT_EQ(s.calibration, "");
}

TEST(Scenario, CalibrationIsRelativeToTheFileThatNamesIt) {
  EXPECT_EQ(read_text_scenario(kSmallRun).calibration.filename(), "gpu.json");
}

TEST(Scenario, AssumptionsAreKept) {
  const Scenario s =
      read_text_scenario(std::string("assumptions = ['network: guessed']\n") + kSmallRun);
  EXPECT_EQ(s.assumptions, (std::vector<std::string>{"network: guessed"}));
  EXPECT_NE(s.text.find("network: guessed"), std::string::npos);
}

TEST(Scenario, TextIsCanonicalAndReadsBack) {
  const Scenario first = read_text_scenario(kSmallRun, {"cluster=h100-8x400", "recompute=full"});
  const Scenario second = read_text_scenario(first.text);
  EXPECT_EQ(second.text, first.text);
  EXPECT_EQ(second.hash, first.hash);
}

TEST(Scenario, CommentsAndOrderDoNotChangeTheHash) {
  const std::string run = kSmallRun;
  const std::string moved = "seed = 7 # a comment\n" + run;
  EXPECT_EQ(read_text_scenario(moved).hash, read_text_scenario(run, {"seed=7"}).hash);
  EXPECT_NE(read_text_scenario(moved).hash, read_text_scenario(run).hash);
}

// A model file with two encoders, for what a run may lay over it.
class BasedOnFile : public testing::Test {
 protected:
  Model model(const std::string& lines) const {
    directory_.write("two.toml", R"(
      llm = "llama-3-8b"
      encoders = [{ base = "vit-3b", projector = "linear" },
                  { base = "vit-5b", projector = "linear" }]
    )");
    const auto file = directory_.write("run.toml", R"(
      calibration = "gpu.json"
      cluster = "h100-8x400"
      parallelism.global_batch_size = 8
      data = { samples = 10, tokens_per_sample = 4096, tiles_per_sample = 1 }
      [model]
      base = "two.toml"
    )" + lines);
    return read_scenario(file).job.model;
  }
  Directory directory_;
};

TEST_F(BasedOnFile, NamesComeFromFiles) {
  const Model m = model("");
  EXPECT_EQ(m.name, "two");
  EXPECT_EQ(m.llm.name, "llama-3-8b");
  EXPECT_EQ(m.encoders[1].name, "vit-5b");
}

TEST_F(BasedOnFile, ATableChangesTheLlm) {
  const Model m = model("[model.llm]\nvocab_size = 500");
  EXPECT_EQ(m.llm.vocab_size, 500);
  EXPECT_EQ(m.llm.blocks.hidden_size, 4096);
}

TEST_F(BasedOnFile, ANameReplacesTheLlm) {
  EXPECT_EQ(model("llm = 'gpt-11b'").llm.blocks.hidden_size, 3072);
}

TEST_F(BasedOnFile, AsManyEncodersAreChangedOneByOne) {
  const Model m = model("[[model.encoders]]\n[[model.encoders]]\ntrained = false");
  EXPECT_TRUE(m.encoders[0].trained);
  EXPECT_FALSE(m.encoders[1].trained);
  EXPECT_EQ(m.encoders[1].blocks.hidden_size, 3072);
}

TEST_F(BasedOnFile, AnIndexChangesOneEncoder) {
  const Model m = model("[model.encoders.1]\ntrained = false");
  EXPECT_TRUE(m.encoders[0].trained);
  EXPECT_FALSE(m.encoders[1].trained);
}

TEST_F(BasedOnFile, FewerEncodersReplaceAll) {
  const Model m = model("encoders = [{ base = 'vit-11b', projector = 'mlp2' }]");
  ASSERT_EQ(m.encoders.size(), 1u);
  EXPECT_EQ(m.encoders[0].blocks.hidden_size, 4096);
}

}  // namespace
}  // namespace mllmsim::test
