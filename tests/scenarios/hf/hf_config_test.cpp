// Excerpts of config.json files: only the keys that matter here.
#include "scenarios/hf/hf_config.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

std::string converted(const std::string& json, ModelPart part) {
  const Directory directory;
  return to_toml(read_hf_config(directory.write("config.json", json), part));
}

std::string problem(const std::string& json, ModelPart part) {
  const Directory directory;
  try {
    read_hf_config(directory.write("config.json", json), part);
    return "";
  } catch (const UserError& e) {
    return std::string(e.what()).substr(directory.path().string().size() + 1);
  }
}

TEST(HfConfig, Llama) {
  EXPECT_EQ(converted(R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
                          "num_attention_heads": 32, "num_key_value_heads": 8,
                          "intermediate_size": 14336, "vocab_size": 128256,
                          "rope_theta": 500000.0, "tie_word_embeddings": false})",
                      ModelPart::llm),
            "gated_mlp = true\nhidden_size = 4096\nintermediate_size = 14336\n"
            "linear_bias = false\nnorm = \"rms_norm\"\nnum_attention_heads = 32\n"
            "num_hidden_layers = 32\nnum_key_value_heads = 8\nqkv_bias = false\nrotary = true\n"
            "tie_word_embeddings = false\nvocab_size = 128256\n");
}

TEST(HfConfig, Qwen2HasBiasesOnQueryKeyAndValueOnly) {
  const std::string text = converted(R"({"model_type": "qwen2"})", ModelPart::llm);
  EXPECT_NE(text.find("qkv_bias = true"), std::string::npos);
  EXPECT_NE(text.find("linear_bias = false"), std::string::npos);
}

TEST(HfConfig, Gpt2HasKeysOfItsOwn) {
  EXPECT_EQ(
      converted(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                          "n_inner": null, "n_positions": 1024, "vocab_size": 50257})",
                ModelPart::llm),
      "hidden_size = 768\nintermediate_size = 3072\nlinear_bias = true\n"
      "max_position_embeddings = 1024\nnorm = \"layer_norm\"\nnum_attention_heads = 12\n"
      "num_hidden_layers = 12\npacked_qkv = true\nqkv_bias = true\ntie_word_embeddings = true\n"
      "vocab_size = 50257\n");
}

const char* const kInternVl = R"({
  "downsample_ratio": 0.5, "force_image_size": 448,
  "llm_config": {"model_type": "internlm2", "hidden_size": 6144, "bias": false},
  "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 3200, "image_size": 224,
                    "patch_size": 14, "qkv_bias": false, "qk_normalization": true,
                    "norm_type": "rms_norm", "drop_path_rate": 0.4}})";

TEST(HfConfig, MultimodalConfigsHoldTheirParts) {
  EXPECT_EQ(converted(kInternVl, ModelPart::encoder),
            "class_token = true\ndrop_path = true\nhidden_size = 3200\nimage_size = 448\n"
            "layer_scale = true\nlinear_bias = true\nnorm = \"rms_norm\"\npacked_qkv = true\n"
            "patch_size = 14\n"
            "pixel_shuffle = 0.5\nqk_norm = true\nqkv_bias = false\n");
  EXPECT_NE(converted(kInternVl, ModelPart::llm).find("hidden_size = 6144"), std::string::npos);
}

TEST(HfConfig, ProblemsNameFileAndKey) {
  EXPECT_EQ(
      problem(R"({"model_type": "llama", "hidden_size": "big", "vocab_size": 1.5})", ModelPart::llm)
          .find("config.json: hidden_size: expected a whole number, found \"big\"\n"),
      0u);
  const std::string lama = problem(R"({"text_config": {"model_type": "lama"}})", ModelPart::llm);
  EXPECT_EQ(lama.find("config.json: text_config.model_type: expected \"llama\", \"mistral\", "), 0u)
      << lama;
  EXPECT_NE(lama.find("found \"lama\" (other models are written out in TOML); did you mean "
                      "\"llama\"?"),
            std::string::npos)
      << lama;
  EXPECT_EQ(problem("[1]", ModelPart::llm), "config.json: expected a JSON object");
}

TEST(HfConfig, SyntaxErrorsHavePositions) {
  EXPECT_EQ(problem("{\n  \"a\": x\n}", ModelPart::llm).find("config.json:2:8: not valid JSON: "),
            0u)
      << problem("{\n  \"a\": x\n}", ModelPart::llm);
  EXPECT_EQ(problem("{} {}", ModelPart::llm).find("config.json:1:4: not valid JSON: "), 0u);
  EXPECT_EQ(problem("{", ModelPart::llm).find("config.json:1:2: not valid JSON: "), 0u);
}

TEST(HfConfig, KeysInTheSameTableComeOverTheFile) {
  const Directory directory;
  directory.write("config.json", R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 500,
      "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256})");
  const auto file = directory.write("run.toml", R"(
    model.llm = { hf_config = "config.json", vocab_size = 512 }
    calibration = "gpu.json"
    cluster = "h100-8x400"
    parallelism.global_batch_size = 8
    data = { samples = 10, tokens_per_sample = 100 })");
  const Model model = read_scenario(file).job.model;
  EXPECT_EQ(model.llm.blocks.hidden_size, 64);
  EXPECT_EQ(model.llm.vocab_size, 512);
}

}  // namespace
}  // namespace mllmsim::test
