// Whole models out of their config.json: parameters as published, and nothing dropped in silence.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/hf/hf_config.hpp"
#include "sim/base/errors.hpp"
#include "tests/scenarios/hf/published_models.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
namespace {

Model model_of(const std::string& config) {
  const Directory directory;
  directory.write("config.json", config);
  return read_model_file(directory.write("model.toml", "hf_config = \"config.json\"\n").string());
}

std::string problem_with(const std::string& config) {
  const Directory directory;
  const auto file = directory.write("config.json", config);
  try {
    read_hf_model(file);
    return "";
  } catch (const UserError& e) {
    return std::string(e.what()).substr(directory.path().string().size() + 1);
  }
}

PublishedModel published(const std::string& name) {
  for (const PublishedModel& m : published_models())
    if (m.name == name) return m;
  return {};
}

TEST(WholeModels, HaveTheirPublishedParameters) {
  const auto all = published_models();
  EXPECT_GE(all.size(), 25u);
  for (const PublishedModel& p : all) {
    const double found = static_cast<double>(parameters(model_of(p.config)));
    EXPECT_NEAR(found / p.parameters, 1, 0.005) << p.name << ": " << found;
  }
}

std::string with(const std::string& config, const std::string& more) {
  return config.substr(0, config.rfind('}')) + ", " + more + "}";
}

TEST(WholeModels, Qwen25VlHasWindowsButForFourBlocks) {
  const Model m = model_of(published("Qwen2.5-VL-7B").config);
  const Encoder& e = m.encoders.at(0);
  EXPECT_EQ(blocks_of(m, {LayerKind::block, 0, 0}).attention_chunk_size, 64);  // 8 x 8 patches
  EXPECT_EQ(blocks_of(m, {LayerKind::block, 0, 7}).attention_chunk_size, 0);
  EXPECT_EQ(e.tokens_per_output_token, 4);
  EXPECT_EQ(e.patch_values, 3 * 14 * 14 * 2);
  EXPECT_EQ(e.projector_sizes, (std::vector<std::int64_t>{5120, 5120, 3584}));
}

TEST(WholeModels, Gemma3HasFiveWindowsToOneFullBlockAndPools) {
  const Model m = model_of(published("gemma-3-27b").config);
  const auto window = [&](std::uint32_t i) {
    return blocks_of(m, {LayerKind::block, 1, i}).sliding_window;
  };
  EXPECT_EQ(window(4), 1024);
  EXPECT_EQ(window(5), 0);
  EXPECT_EQ(window(6), 1024);
  EXPECT_EQ(m.encoders.at(0).tokens_per_tile, 64 * 64);
  EXPECT_EQ(m.encoders.at(0).output_tokens_per_tile, 256);
  EXPECT_TRUE(m.llm.tie_word_embeddings);
}

TEST(WholeModels, DeepSeekHasThreeDenseBlocksAndOneMoreForTheNextToken) {
  const Model m = model_of(published("DeepSeek-V3").config);
  const auto block = [&](std::uint32_t i) { return blocks_of(m, {LayerKind::block, 0, i}); };
  EXPECT_EQ(block(2).experts.num_experts, 0);
  EXPECT_EQ(block(3).experts.num_experts, 256);
  EXPECT_EQ(block(3).experts.shared_expert_intermediate_size, 2048);
  EXPECT_FALSE(block(60).joins_next_token);
  EXPECT_TRUE(block(61).joins_next_token);
  EXPECT_EQ(m.llm.blocks.num_hidden_layers, 62);
  // 37 billion values see a token: the authors' count.
  double active = 0;
  for (const Layer& l : layers_of(m))
    if (l.index < 61) active += static_cast<double>(matrix_values(m, l));
  active -= 129280.0 * 7168;  // the second head
  EXPECT_NEAR(active / 1e9, 37, 0.6);
}

TEST(WholeModels, Qwen3VlFeedsThreeBlocks) {
  const Model m = model_of(published("Qwen3-VL-30B-A3B").config);
  EXPECT_EQ(m.encoders.at(0).deepstack_features, 3);
  EXPECT_TRUE(m.llm.blocks.qk_norm_per_head);
  EXPECT_EQ(m.llm.blocks.experts.num_experts_per_tok, 8);
}

// A picture is four tiles of 40 x 40 patches and a class token, each padded to 1,608.
TEST(WholeModels, MllamaSeesPicturesByCrossAttention) {
  const Model m = model_of(published("Llama-3.2-11B-Vision").config);
  EXPECT_EQ(m.encoders.at(0).tokens_per_tile, 4 * 1608);
  EXPECT_EQ(m.encoders.at(0).output_tokens_per_tile, 4 * 1601);
  EXPECT_EQ(m.encoders.at(0).projector_sizes, (std::vector<std::int64_t>{6 * 1280, 4096}));
  EXPECT_TRUE(blocks_of(m, {LayerKind::block, 0, 32}).gated_branches);
  EXPECT_FALSE(blocks_of(m, {LayerKind::block, 0, 31}).gated_branches);
  EXPECT_TRUE(blocks_of(m, {LayerKind::block, 1, 3}).cross_attention);
  EXPECT_FALSE(blocks_of(m, {LayerKind::block, 1, 4}).cross_attention);
}

TEST(WholeModels, GptNeoxHasParallelBranchesUnlessItSaysOtherwise) {
  const std::string config = published("pythia-6.9b").config;
  EXPECT_TRUE(model_of(config).llm.blocks.parallel_residual);
  EXPECT_FALSE(model_of(with(R"({"model_type": "gpt_neox", "num_hidden_layers": 2,
      "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 100})",
                             R"("use_parallel_residual": false)"))
                   .llm.blocks.parallel_residual);
}

TEST(WholeModels, Patch14Siglip384HasTwentySevenPatchesASide) {
  const Model m = model_of(published("llava-onevision-qwen2-7b").config);
  EXPECT_EQ(m.encoders.at(0).tokens_per_tile, 27 * 27);
  EXPECT_EQ(m.encoders.at(0).image.most_tiles, 9);
}

TEST(WholeModels, WhatIsNotModelledIsRefusedByName) {
  const std::string llama = published("Llama-3.1-8B").config;
  EXPECT_EQ(problem_with(with(llama, R"("num_local_experts": 8)")),
            "config.json: num_local_experts: changes what layers cost and is not modelled for "
            "llama, found 8");
  EXPECT_EQ(problem_with(with(llama, R"("num_local_experts": 0, "layer_types": null)")), "");
  EXPECT_EQ(problem_with(with(published("Qwen3-VL-8B").config,
                              R"("audio_config": {"d_model": 1280, "encoder_layers": 32})")),
            "config.json: audio_config: a part of the model that is not known of qwen3_vl; write "
            "the model out in TOML, with the parts it has");
  EXPECT_EQ(problem_with(R"({"model_type": "idefics2", "vision_config": {}, "text_config": {}})")
                .find("config.json: model_type: expected \"llava\", \"llava_next\", "),
            0u);
  // State-space layers, alone or beside attention.
  for (const char* type : {"jamba", "mamba2", "nemotron_h", "bamba", "qwen3_next", "falcon_h1"})
    EXPECT_EQ(problem_with(fmt::format(R"({{"model_type": "{}", "state_size": 128}})", type))
                  .find("config.json: model_type: expected "),
              0u)
        << type;
  EXPECT_EQ(problem_with(with(llama, R"("mamba_d_state": 128)")),
            "config.json: mamba_d_state: changes what layers cost and is not modelled for llama, "
            "found 128");
  EXPECT_EQ(problem_with(with(published("gpt-oss-20b").config,
                              R"("layer_types": ["full_attention", "linear_attention"])")),
            "config.json: layer_types: expected \"full_attention\" or \"sliding_attention\", "
            "found \"linear_attention\"");
}

// What is shipped is what the authors' config says.
TEST(WholeModels, ShippedOnesAreAsTheirConfigs) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"llama-3-405b", "Llama-3.1-405B"},
      {"mixtral-8x7b", "Mixtral-8x7B"},
      {"deepseek-v3", "DeepSeek-V3"},
      {"qwen2-vl-7b", "Qwen2-VL-7B"},
      {"qwen2-vl-72b", "Qwen2-VL-72B"},
      {"qwen2.5-vl-7b", "Qwen2.5-VL-7B"},
      {"qwen2.5-vl-72b", "Qwen2.5-VL-72B"},
      {"qwen3-vl-30b-a3b", "Qwen3-VL-30B-A3B"},
      {"qwen3-vl-235b-a22b", "Qwen3-VL-235B-A22B"},
      {"kimi-vl-a3b", "Kimi-VL-A3B"},
      {"gemma-3-27b", "gemma-3-27b"},
      {"internvl2.5-8b", "InternVL2_5-8B"},
      {"internvl2.5-26b", "InternVL2_5-26B"},
      {"internvl2.5-78b", "InternVL2_5-78B"},
      {"internvl3-8b", "InternVL3-8B"},
      {"internvl3-78b", "InternVL3-78B"},
      {"llama-3.2-vision-11b", "Llama-3.2-11B-Vision"},
      {"llama-3.2-vision-90b", "Llama-3.2-90B-Vision"},
      {"llava-onevision-7b", "llava-onevision-qwen2-7b"},
      {"llava-onevision-72b", "llava-onevision-qwen2-72b"},
  };
  for (const auto& [shipped, name] : kPairs) {
    const Model a = read_model_file(shipped), b = model_of(published(name).config);
    EXPECT_EQ(parameters(a), parameters(b)) << shipped;
    ASSERT_EQ(a.encoders.size(), b.encoders.size()) << shipped;
    for (std::size_t e = 0; e < a.encoders.size(); ++e) {
      EXPECT_EQ(a.encoders[e].tokens_per_tile, b.encoders[e].tokens_per_tile) << shipped;
      EXPECT_EQ(a.encoders[e].output_tokens_per_tile, b.encoders[e].output_tokens_per_tile);
      EXPECT_EQ(a.encoders[e].patch_values, b.encoders[e].patch_values) << shipped;
      EXPECT_EQ(a.encoders[e].image.rule, b.encoders[e].image.rule) << shipped;
    }
    const auto layers = layers_of(a);
    ASSERT_EQ(layers, layers_of(b)) << shipped;
    for (const Layer& l : layers)
      EXPECT_EQ(matrix_values(a, l), matrix_values(b, l)) << shipped << layer_name(a, l);
  }
}

TEST(WholeModels, ALanguageModelOutOfOneIsAskedAboutItsEncoder) {
  const Directory directory;
  directory.write("config.json", published("InternVL3-8B").config);
  const auto problem_of = [&](const std::string& text) -> std::string {
    try {
      read_model_file(directory.write("model.toml", text).string());
      return "";
    } catch (const UserError& e) {
      return e.what();
    }
  };
  EXPECT_NE(problem_of("llm = { hf_config = \"config.json\" }").find("vision_config"),
            std::string::npos);
  EXPECT_EQ(problem_of("llm = { hf_config = \"config.json\" }\nencoders = []"), "");
}

}  // namespace
}  // namespace mllmsim::test
