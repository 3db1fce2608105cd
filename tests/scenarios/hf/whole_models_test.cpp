// Whole models out of their config.json: parameters as published, and nothing dropped in silence.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/hf/hf_config.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
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

TEST(WholeModels, Qwen35HasThreeRecurrencesToOneAttention) {
  const Model m = model_of(published("Qwen3.8-27B").config);
  const auto block = [&](std::uint32_t i) { return blocks_of(m, {LayerKind::block, 1, i}); };
  EXPECT_TRUE(block(2).recurrence);
  EXPECT_EQ(block(2).recurrence.num_value_heads, 48);
  EXPECT_FALSE(block(3).recurrence);
  EXPECT_TRUE(block(3).attention_gate);
  EXPECT_FALSE(block(64).recurrence);  // of multi-token prediction
  EXPECT_TRUE(block(64).joins_next_token);
  EXPECT_EQ(m.encoders.at(0).deepstack_features, 0);
}

TEST(WholeModels, NemotronHasOneHalfInEachLayer) {
  const Model m = model_of(published("Nemotron-3.5-Lightning-30B-A3B").config);
  const auto block = [&](std::uint32_t i) { return blocks_of(m, {LayerKind::block, 0, i}); };
  EXPECT_TRUE(block(0).recurrence && block(0).has_mixer && !block(0).has_mlp);
  EXPECT_TRUE(!block(1).has_mixer && block(1).has_mlp && block(1).experts.num_experts == 128);
  EXPECT_TRUE(!block(5).recurrence && block(5).has_mixer && !block(5).has_mlp);
  EXPECT_TRUE(block(52).joins_next_token && block(52).has_mixer && block(52).has_mlp);
}

TEST(WholeModels, RefuseRecurrencesThatAreNotModelled) {
  const std::string nemotron = published("Nemotron-3-Nano-4B").config;
  EXPECT_NE(problem_with(with(nemotron, R"("moe_latent_size": 1024)")).find("moe_latent_size"),
            std::string::npos);
  std::string odd = nemotron;
  odd.replace(odd.find("M-M-"), 4, "M-X-");
  const Directory directory;
  directory.write("config.json", odd);
  try {
    read_model_file(directory.write("model.toml", "hf_config = \"config.json\"\n").string());
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("hybrid_override_pattern"), std::string::npos) << e.what();
  }
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
  EXPECT_EQ(problem_with(with(llama, R"("mamba_d_state": 128)")),
            "config.json: mamba_d_state: changes what layers cost and is not modelled for llama, "
            "found 128");
  EXPECT_EQ(problem_with(with(published("gpt-oss-20b").config,
                              R"("layer_types": ["full_attention", "linear_attention"])")),
            "config.json: layer_types: expected \"full_attention\" or \"sliding_attention\", "
            "found \"linear_attention\"");
}

// Keys that real configs have beside those that matter, and that cost nothing.
TEST(WholeModels, RealConfigsHaveMuchThatCostsNothing) {
  const std::string more = R"("rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
      "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
      "attention_dropout": 0.0, "pretraining_tp": 1, "chunk_size_feed_forward": 0,
      "add_cross_attention": false, "router_aux_loss_coef": 0.001, "output_router_logits": false,
      "use_cache": true, "torch_dtype": "bfloat16", "auto_map": {"AutoModel": "a.B"}, "bos_token_id": 1)";
  for (const PublishedModel& p : published_models())
    EXPECT_EQ(problem_with(with(p.config, more)), "") << p.name;
}

// InternVL's published vision_config states experts that its ViT does not have.
TEST(WholeModels, InternVitHasExpertsOnlyIfItSaysSo) {
  const auto config = [](const char* use) {
    std::string text = published("InternVL3-8B").config;
    const std::string at = R"("vision_config": {)";
    return text.insert(text.find(at) + at.size(), fmt::format(R"("capacity_factor": 1.2,
        "eval_capacity_factor": 1.4, "laux_allreduce": "all_nodes", "moe_coeff_ratio": 0.5,
        "moe_intermediate_size": 768, "moe_output_scale": 4.0, "noisy_gate_policy": "RSample_before",
        "num_experts": 8, "num_routed_experts": 4, "num_shared_experts": 4, "num_channels": 3,
        "shared_expert_intermediate_size": 3072, "use_moe": {}, )",
                                                              use));
  };
  EXPECT_EQ(problem_with(config("false")), "");
  EXPECT_EQ(problem_with(config("true"))
                .find("config.json: vision_config.use_moe: expected false: experts of a ViT are "
                      "not modelled\n"),
            0u);
}

// A class with experts has them though its config leaves their number to the class.
TEST(WholeModels, ExpertsAreThereWithoutBeingNamed) {
  const std::string sizes = R"("num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
      "intermediate_size": 512, "vocab_size": 1000)";
  const auto experts = [&](const char* type) {
    return model_of(fmt::format(R"({{"model_type": "{}", {}}})", type, sizes)).llm.blocks.experts;
  };
  EXPECT_EQ(experts("mixtral").num_experts, 8);
  EXPECT_EQ(experts("qwen2_moe").num_experts, 60);
  EXPECT_EQ(experts("qwen3_moe").num_experts, 128);
  EXPECT_EQ(experts("gpt_oss").num_experts, 128);
  EXPECT_EQ(problem_with(fmt::format(R"({{"model_type": "deepseek_v3", {}}})", sizes))
                .find("config.json: n_routed_experts: missing\n"),
            0u);
  // Mistral's window is off only where the config says so.
  const auto window = [&](const char* more) {
    return model_of(fmt::format(R"({{"model_type": "mistral", {}{}}})", sizes, more))
        .llm.blocks.sliding_window;
  };
  EXPECT_EQ(window(""), 4096);
  EXPECT_EQ(window(R"(, "sliding_window": null)"), 0);
}

TEST(WholeModels, WhatWouldChangeCostIsNeverPassedOver) {
  const std::string llama = published("Llama-3.1-8B").config;
  const auto refused = [&](const std::string& config, const std::string& key,
                           const std::string& value) {
    const std::string text = problem_with(with(config, fmt::format(R"("{}": {})", key, value)));
    EXPECT_EQ(text.find("config.json: " + key + ": "), 0u) << key << ": " << text;
  };
  for (const auto& [key, value] : {std::pair{"num_experts", "64"},
                                   {"sliding_window", "4096"},
                                   {"layer_types", R"(["sliding_attention"])"},
                                   {"layers_block_type", R"(["mamba"])"},
                                   {"attn_output_gate", "true"},
                                   {"use_qk_norm", "true"},
                                   {"num_kv_shared_layers", "10"},
                                   {"kv_lora_rank", "512"},
                                   {"index_topk", "2048"},
                                   {"mm_vision_tower", R"("openai/clip-vit-large-patch14-336")"},
                                   {"mm_resampler_type", R"("perceiver")"},
                                   {"linear_num_value_heads", "32"},
                                   {"mtp_num_hidden_layers", "1"},
                                   {"num_nextn_predict_layers", "1"}})
    refused(llama, key, value);
  refused(published("Qwen3-8B").config, "layer_types", R"(["full_attention", "linear_attention"])");
  refused(published("Qwen2.5-7B").config, "audio_config", R"({"d_model": 1280})");
  EXPECT_EQ(problem_with(with(llama, R"("layer_types": ["full_attention"])")), "");
  for (const auto& [type, layers] :
       {std::pair{"kimi_linear", "linear attention (gated delta nets)"},
        {"deepseek_v32", "sparse attention"},
        {"jamba", "state-space layers (Mamba)"},
        {"zamba2", "state-space layers (Mamba)"}})
    EXPECT_EQ(
        problem_with(fmt::format(R"({{"model_type": "{}"}})", type))
            .find(fmt::format("config.json: model_type: \"{}\" has {}, which are not modelled; "
                              "expected ",
                              type, layers)),
        0u)
        << type;
}

// Found by changing every field of the classes of transformers, one at a time.
TEST(WholeModels, KeysOfTheirClassesAreNotPassedOver) {
  const auto refused = [&](const char* model, const std::string& from, const std::string& to,
                           const std::string& key) {
    std::string config = published(model).config;
    if (from.empty())
      config = with(config, to);
    else
      config.replace(config.find(from), from.size(), to);
    EXPECT_EQ(problem_with(config).find("config.json: " + key + ": "), 0u)
        << model << " " << key << ": " << problem_with(config);
  };
  const std::string text = R"("text_config": {)";
  refused("gemma-3-27b", text, text + R"("attn_logit_softcapping": 50.0, )",
          "text_config.attn_logit_softcapping");
  refused("gemma-3-27b", text, text + R"("use_bidirectional_attention": true, )",
          "text_config.use_bidirectional_attention");
  refused("Qwen3.6-35B-A3B", R"("mtp_use_dedicated_embeddings": false)",
          R"("mtp_use_dedicated_embeddings": true)", "text_config.mtp_use_dedicated_embeddings");
  refused("Nemotron-H-8B", R"("num_hidden_layers": 52)", R"("num_hidden_layers": 53)",
          "num_hidden_layers");
  refused("Mamba-Codestral-7B", R"("expand": 2)", R"("expand": 3)", "expand");
  refused("Qwen2-VL-7B", R"("hidden_size": 3584, "mlp_ratio")",
          R"("hidden_size": 4096, "mlp_ratio")", "vision_config.hidden_size");
  refused("Qwen2.5-VL-7B", R"("out_hidden_size": 3584)", R"("out_hidden_size": 4096)",
          "vision_config.out_hidden_size");
  refused("DeepSeek-V3", "", R"("attention_bias": true)", "attention_bias");
  refused("llava-onevision-qwen2-7b", "anyres_max_9", "anyres", "vision_aspect_ratio");
  refused("llava-1.5-7b", R"(strategy": "default")", R"(strategy": "cls")",
          "vision_feature_select_strategy");
}

TEST(WholeModels, InternVlWithoutDynamicSizesHasOneTilePerPicture) {
  std::string config = published("InternVL3-8B").config;
  EXPECT_EQ(model_of(config).encoders.at(0).image.rule, Images::tiles);
  const std::string key = R"("dynamic_image_size": true)";
  config.replace(config.find(key), key.size(), R"("dynamic_image_size": false)");
  EXPECT_EQ(model_of(config).encoders.at(0).image.rule, Images::one);
}

// Qwen's classes: 4,096 tokens from layer 28 on, and none where the config says null.
TEST(WholeModels, QwensWindowHasItsClassesSize) {
  std::string config = published("Qwen3-8B").config;
  config = with(config, R"("use_sliding_window": true)");
  EXPECT_EQ(blocks_of(model_of(config), {LayerKind::block, 0, 28}).sliding_window, 4096);
  EXPECT_EQ(blocks_of(model_of(config), {LayerKind::block, 0, 27}).sliding_window, 0);
  EXPECT_EQ(model_of(with(config, R"("sliding_window": null)")).llm.blocks.sliding_window, 0);
}

// scenarios/models/README.md shows what is computed here.
TEST(WholeModels, TheReadmeListsThem) {
  const std::string readme = read_file(
      std::filesystem::path(MLLMSIM_SOURCE_DIR) / "scenarios/models/README.md", kSmallFile);
  for (const PublishedModel& p : published_models()) {
    const auto found = static_cast<double>(parameters(model_of(p.config)));
    const std::string row =
        fmt::format("| {} | {:.3f} | {:.3f} | {:+.2f} % |", p.name, p.parameters / 1e9, found / 1e9,
                    100 * (found / p.parameters - 1));
    EXPECT_NE(readme.find(row), std::string::npos) << row;
  }
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
      {"qwen3-8b", "Qwen3-8B"},
      {"gpt-oss-20b", "gpt-oss-20b"},
      {"nemotron-3-nano-4b", "Nemotron-3-Nano-4B"},
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
