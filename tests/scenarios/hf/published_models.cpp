#include "tests/scenarios/hf/published_models.hpp"

#include <fmt/format.h>

namespace mllmsim::test {
namespace {

// A SwiGLU decoder: layers, width, heads, key-value heads, MLP, vocabulary.
std::string decoder(const char* type, int layers, int h, int heads, int kv, int mlp, int vocab,
                    const std::string& more = "") {
  return fmt::format(
      R"("model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {},
         "num_key_value_heads": {}, "intermediate_size": {}, "vocab_size": {}{})",
      type, layers, h, heads, kv, mlp, vocab, more.empty() ? "" : ", " + more);
}

std::string vit(const char* type, int layers, int h, int heads, int mlp, int image, int patch,
                const std::string& more = "") {
  return fmt::format(
      R"("model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {},
         "intermediate_size": {}, "image_size": {}, "patch_size": {}{})",
      type, layers, h, heads, mlp, image, patch, more.empty() ? "" : ", " + more);
}

const std::string kUntied = R"("tie_word_embeddings": false)";
const std::string kTied = R"("tie_word_embeddings": true)";
const std::string kQwenWindow =
    R"("use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 28)";

PublishedModel flat(const char* name, double parameters, const std::string& text) {
  return {name, parameters, "{" + text + "}"};
}

PublishedModel nested(const char* name, double parameters, const char* type,
                      const std::string& text, const std::string& vision, const std::string& more,
                      const char* text_key = "text_config") {
  return {name, parameters,
          fmt::format(R"({{"model_type": "{}", "{}": {{{}}}, "vision_config": {{{}}}, {}}})", type,
                      text_key, text, vision, more)};
}

void add_text_models(std::vector<PublishedModel>& out) {
  const std::string qwen3 = R"("head_dim": 128, "attention_bias": false, )" + kUntied;
  out.push_back(flat("Llama-2-7b", 6738415616, decoder("llama", 32, 4096, 32, 32, 11008, 32000)));
  out.push_back(
      flat("Llama-3.1-8B", 8030261248, decoder("llama", 32, 4096, 32, 8, 14336, 128256, kUntied)));
  out.push_back(flat("Llama-3.1-70B", 70553706496,
                     decoder("llama", 80, 8192, 64, 8, 28672, 128256, kUntied)));
  out.push_back(flat("Llama-3.1-405B", 405853388800,
                     decoder("llama", 126, 16384, 128, 8, 53248, 128256, kUntied)));
  out.push_back(flat(
      "Mistral-7B-v0.1", 7241732096,
      decoder("mistral", 32, 4096, 32, 8, 14336, 32000, R"("sliding_window": 4096, )" + kUntied)));
  out.push_back(flat(
      "Phi-3-mini-4k", 3821079552,
      decoder("phi3", 32, 3072, 32, 32, 8192, 32064, R"("sliding_window": 2047, )" + kUntied)));
  out.push_back(
      flat("Qwen2.5-7B", 7615616512,
           decoder("qwen2", 28, 3584, 28, 4, 18944, 152064, kQwenWindow + ", " + kUntied)));
  out.push_back(
      flat("Qwen2.5-72B", 72706203648, decoder("qwen2", 80, 8192, 64, 8, 29568, 152064, kUntied)));
  out.push_back(
      flat("Qwen3-8B", 8190735360, decoder("qwen3", 36, 4096, 32, 8, 12288, 151936, qwen3)));
}

void add_experts(std::vector<PublishedModel>& out) {
  const auto qwen3 = [](int experts, int width) {
    return fmt::format(
        R"("head_dim": 128, "num_experts": {}, "num_experts_per_tok": 8,
           "moe_intermediate_size": {}, "decoder_sparse_step": 1, "mlp_only_layers": [],
           "norm_topk_prob": true, "router_aux_loss_coef": 0.001, {})",
        experts, width, kUntied);
  };
  const auto local = [](int experts, int chosen) {
    return fmt::format(R"("num_local_experts": {}, "num_experts_per_tok": {}, {})", experts, chosen,
                       kUntied);
  };
  const auto gpt_oss = [](int experts) {
    return fmt::format(R"("num_local_experts": {}, "num_experts_per_tok": 4, "head_dim": 64,
                          "experts_per_token": 4, "sliding_window": 128, "attention_bias": true, {})",
                       experts, kUntied);
  };
  out.push_back(flat("Mixtral-8x7B", 46702792704,
                     decoder("mixtral", 32, 4096, 32, 8, 14336, 32000, local(8, 2))));
  out.push_back(flat("Mixtral-8x22B", 140630071296,
                     decoder("mixtral", 56, 6144, 48, 8, 16384, 32768, local(8, 2))));
  out.push_back(
      flat("Qwen1.5-MoE-A2.7B", 14315784192,
           decoder("qwen2_moe", 24, 2048, 16, 16, 5632, 151936,
                   R"("num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                 "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1, )" +
                       kUntied)));
  out.push_back(flat("Qwen3-30B-A3B", 30532122624,
                     decoder("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, qwen3(128, 768))));
  out.push_back(flat("Qwen3-235B-A22B", 235093634560,
                     decoder("qwen3_moe", 94, 4096, 64, 4, 12288, 151936, qwen3(128, 1536))));
  out.push_back(flat("gpt-oss-20b", 20914757184,
                     decoder("gpt_oss", 24, 2880, 64, 8, 2880, 201088, gpt_oss(32))));
  out.push_back(flat("gpt-oss-120b", 116829156672,
                     decoder("gpt_oss", 36, 2880, 64, 8, 2880, 201088, gpt_oss(128))));
  // Its checkpoint has 684.5 billion with its layer for multi-token prediction, of which 1.85 are
  // second copies of embedding and head.
  out.push_back(
      flat("DeepSeek-V3", 684489845504 - 2 * 129280.0 * 7168,
           decoder("deepseek_v3", 61, 7168, 128, 128, 18432, 129280,
                   R"("n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
                 "moe_intermediate_size": 2048, "moe_layer_freq": 1, "first_k_dense_replace": 3,
                 "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                 "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1,
                 "n_group": 8, "topk_group": 4, "ep_size": 1, )" +
                       kUntied)));
}

void add_llava(std::vector<PublishedModel>& out) {
  const std::string clip = vit("clip_vision_model", 24, 1024, 16, 4096, 336, 14);
  const std::string siglip =
      vit("siglip_vision_model", 26, 1152, 16, 4304, 384, 14, R"("vision_use_head": false)");
  const std::string pinpoints = R"("image_grid_pinpoints": [[336, 672], [672, 336], [672, 672],
                                    [1008, 336], [336, 1008]])";
  const std::string more = R"("vision_feature_layer": -2, "projector_hidden_act": "gelu",
                              "vision_feature_select_strategy": "default")";
  const std::string onevision = R"("image_grid_pinpoints": [[384, 384], [384, 768], [768, 384],
      [768, 768], [1152, 1152], [2304, 2304]], "vision_aspect_ratio": "anyres_max_9",
      "vision_feature_layer": -1, "vision_feature_select_strategy": "full")";
  // Its text_config leaves the sizes of Llama-2 7B to the class.
  out.push_back(nested("llava-1.5-7b", 7063427072, "llava",
                       R"("model_type": "llama", "vocab_size": 32064)", clip, more));
  out.push_back(nested("llava-v1.6-mistral-7b", 7566747648, "llava_next",
                       R"("model_type": "mistral", "vocab_size": 32064, "sliding_window": null)",
                       clip, more + ", " + pinpoints));
  out.push_back(nested("llava-onevision-qwen2-7b", 8030348832, "llava_onevision",
                       decoder("qwen2", 28, 3584, 28, 4, 18944, 152000, kUntied), siglip,
                       onevision));
  out.push_back(nested("llava-onevision-qwen2-72b", 73180206624, "llava_onevision",
                       decoder("qwen2", 80, 8192, 64, 8, 29568, 152000, kUntied), siglip,
                       onevision));
}

void add_internvl(std::vector<PublishedModel>& out) {
  const std::string small = vit("intern_vit_6b", 24, 1024, 16, 4096, 448, 14,
                                R"("qkv_bias": true, "qk_normalization": false,
                                   "norm_type": "layer_norm", "drop_path_rate": 0.1)");
  const std::string large = vit("intern_vit_6b", 45, 3200, 25, 12800, 448, 14,
                                R"("qkv_bias": false, "qk_normalization": true,
                                   "norm_type": "rms_norm", "drop_path_rate": 0.4)");
  const std::string more = R"("downsample_ratio": 0.5, "force_image_size": 448,
      "max_dynamic_patch": 12, "min_dynamic_patch": 1, "use_thumbnail": true,
      "dynamic_image_size": true, "ps_version": "v2", "select_layer": -1)";
  const auto chat = [&](const char* name, double parameters, const std::string& llm,
                        const std::string& vision) {
    return nested(name, parameters, "internvl_chat", llm, vision, more, "llm_config");
  };
  const std::string no_bias = R"("bias": false, )" + kUntied;
  out.push_back(chat("InternVL2_5-8B", 8075365376,
                     decoder("internlm2", 32, 4096, 32, 8, 14336, 92553, no_bias), small));
  out.push_back(chat("InternVL2_5-26B", 25514186112,
                     decoder("internlm2", 48, 6144, 48, 8, 16384, 92553, no_bias), large));
  out.push_back(chat("InternVL2_5-78B", 78408318336,
                     decoder("qwen2", 80, 8192, 64, 8, 29568, 151674, kUntied), large));
  out.push_back(chat("InternVL3-78B", 78408318336,
                     decoder("qwen2", 80, 8192, 64, 8, 29568, 151674, kUntied), large));
  out.push_back(chat("InternVL3-8B", 7944373760,
                     decoder("qwen2", 28, 3584, 28, 4, 18944, 151674, kUntied), small));
  out.push_back(
      nested("InternVL3-8B-hf", 7944373760, "internvl",
             decoder("qwen2", 28, 3584, 28, 4, 18944, 151674, kUntied),
             R"("model_type": "internvl_vision", "num_hidden_layers": 24, "hidden_size": 1024,
         "num_attention_heads": 16, "intermediate_size": 4096, "image_size": [448, 448],
         "patch_size": [14, 14], "attention_bias": true, "use_qk_norm": false,
         "norm_type": "layer_norm")",
             R"("downsample_ratio": 0.5, "image_seq_length": 256, "vision_feature_layer": -1)"));
}

std::string qwen2_5_vision(int mlp, int out) {
  return fmt::format(
      R"("model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280, "intermediate_size": {},
         "num_heads": 16, "in_chans": 3, "out_hidden_size": {}, "patch_size": 14,
         "spatial_merge_size": 2, "temporal_patch_size": 2, "tokens_per_second": 2,
         "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31])",
      mlp, out);
}

std::string qwen3_vision(int out) {
  return fmt::format(
      R"("depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16,
         "out_hidden_size": {}, "patch_size": 16, "spatial_merge_size": 2,
         "temporal_patch_size": 2, "num_position_embeddings": 2304,
         "deepstack_visual_indexes": [8, 16, 24])",
      out);
}

// Older Qwen-VL files have the LLM's keys among their own.
PublishedModel qwen_flat(const char* name, double parameters, const std::string& text,
                         const std::string& vision) {
  return flat(name, parameters, text + R"(, "vision_config": {)" + vision + "}");
}

void add_qwen_vl(std::vector<PublishedModel>& out) {
  const auto vision2 = [](int width) {
    return fmt::format(R"("model_type": "qwen2_vl", "depth": 32, "embed_dim": 1280,
        "hidden_size": {}, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2)",
                       width);
  };
  const auto text = [](const char* type, int layers, int h, int heads, int kv, int mlp, int vocab,
                       const std::string& tied) {
    return decoder(type, layers, h, heads, kv, mlp, vocab, kQwenWindow + ", " + tied);
  };
  out.push_back(qwen_flat("Qwen2-VL-2B", 2208985600,
                          text("qwen2_vl", 28, 1536, 12, 2, 8960, 151936, kTied), vision2(1536)));
  out.push_back(qwen_flat("Qwen2-VL-7B", 8291375616,
                          text("qwen2_vl", 28, 3584, 28, 4, 18944, 152064, kUntied),
                          vision2(3584)));
  out.push_back(qwen_flat("Qwen2-VL-72B", 73405560320,
                          text("qwen2_vl", 80, 8192, 64, 8, 29568, 152064, kUntied),
                          vision2(8192)));
  out.push_back(qwen_flat("Qwen2.5-VL-3B", 3754622976,
                          text("qwen2_5_vl", 36, 2048, 16, 2, 11008, 151936, kTied),
                          qwen2_5_vision(3420, 2048)));
  out.push_back(qwen_flat("Qwen2.5-VL-7B", 8292166656,
                          text("qwen2_5_vl", 28, 3584, 28, 4, 18944, 152064, kUntied),
                          qwen2_5_vision(3420, 3584)));
  out.push_back(qwen_flat("Qwen2.5-VL-72B", 73410777344,
                          text("qwen2_5_vl", 80, 8192, 64, 8, 29568, 152064, kUntied),
                          qwen2_5_vision(3456, 8192)));
  const std::string dense = R"("head_dim": 128, "attention_bias": false)";
  const auto experts = [&](int width) {
    return fmt::format(R"("head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
                          "moe_intermediate_size": {}, "decoder_sparse_step": 1,
                          "mlp_only_layers": [])",
                       width);
  };
  out.push_back(nested("Qwen3-VL-8B", 8767123696, "qwen3_vl",
                       decoder("qwen3_vl_text", 36, 4096, 32, 8, 12288, 151936, dense),
                       qwen3_vision(4096), kUntied));
  out.push_back(nested("Qwen3-VL-30B-A3B", 31070754032, "qwen3_vl_moe",
                       decoder("qwen3_vl_moe_text", 48, 2048, 32, 4, 6144, 151936, experts(768)),
                       qwen3_vision(2048), kUntied));
  out.push_back(nested("Qwen3-VL-235B-A22B", 235672604144, "qwen3_vl_moe",
                       decoder("qwen3_vl_moe_text", 94, 4096, 64, 4, 12288, 151936, experts(1536)),
                       qwen3_vision(4096), kUntied));
}

// Pictures of four tiles of 560 pixels; a cross-attention block in five.
void add_mllama(std::vector<PublishedModel>& out) {
  const auto add = [&](const char* name, double parameters, int layers, int h, int heads, int mlp) {
    std::string cross;
    for (int i = 3; i < layers; i += 5) cross += (cross.empty() ? "" : ", ") + std::to_string(i);
    out.push_back(
        nested(name, parameters, "mllama",
               decoder("mllama_text_model", layers, h, heads, 8, mlp, 128256,
                       R"("cross_attention_layers": [)" + cross + "], " + kUntied),
               R"("model_type": "mllama_vision_model", "attention_heads": 16, "hidden_size": 1280,
           "image_size": 560, "intermediate_layers_indices": [3, 7, 15, 23, 30],
           "intermediate_size": 5120, "max_num_tiles": 4, "num_global_layers": 8,
           "num_hidden_layers": 32, "patch_size": 14, "supported_aspect_ratios":
           [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]],
           "vision_output_dim": 7680)",
               R"("image_token_index": 128256)"));
  };
  add("Llama-3.2-11B-Vision", 10670220835, 40, 4096, 32, 14336);
  add("Llama-3.2-90B-Vision", 88.6e9, 100, 8192, 64, 28672);
}

// Attention and MLP side by side.
void add_parallel(std::vector<PublishedModel>& out) {
  out.push_back(flat("pythia-6.9b", 6857302016,
                     decoder("gpt_neox", 32, 4096, 32, 32, 16384, 50432,
                             R"("use_parallel_residual": true, )" + kUntied)));
  out.push_back(flat("phi-2", 2779683840, decoder("phi", 32, 2560, 32, 32, 10240, 51200, kUntied)));
  out.push_back(
      flat("c4ai-command-r-v01", 34980831232, decoder("cohere", 40, 8192, 64, 64, 22528, 256000)));
  out.push_back(flat("falcon-7b", 6921720704,
                     R"("model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544,
                        "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true,
                        "parallel_attn": true, "new_decoder_architecture": false, "bias": false,
                        "alibi": false)"));
}

void add_others(std::vector<PublishedModel>& out) {
  const std::string siglip =
      vit("siglip_vision_model", 27, 1152, 16, 4304, 896, 14, R"("vision_use_head": false)");
  const std::string tokens = R"("mm_tokens_per_image": 256)";
  // Heads and vocabulary of the 4B are left to the class.
  out.push_back(nested("gemma-3-4b", 4300079472, "gemma3",
                       R"("model_type": "gemma3_text", "num_hidden_layers": 34,
                          "hidden_size": 2560, "intermediate_size": 10240, "sliding_window": 1024)",
                       siglip, tokens));
  out.push_back(nested("gemma-3-27b", 27432406640, "gemma3",
                       decoder("gemma3_text", 62, 5376, 32, 16, 21504, 262208,
                               R"("head_dim": 128, "sliding_window": 1024)"),
                       siglip, tokens));
  out.push_back(
      nested("Kimi-VL-A3B", 16407657776, "kimi_vl",
             decoder("deepseek_v3", 27, 2048, 16, 16, 11264, 163840,
                     R"("n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
                 "moe_intermediate_size": 1408, "moe_layer_freq": 1, "first_k_dense_replace": 1,
                 "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                 "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 0)"),
             R"("model_type": "moonvit", "num_hidden_layers": 27, "hidden_size": 1152,
         "num_attention_heads": 16, "intermediate_size": 4304, "patch_size": 14,
         "init_pos_emb_height": 64, "init_pos_emb_width": 64, "merge_kernel_size": [2, 2])",
             kUntied));
  out.push_back(nested(
      "GLM-4.5V", 107710933120, "glm4v_moe",
      decoder("glm4v_moe_text", 46, 4096, 96, 8, 10944, 151552,
              R"("head_dim": 128, "n_routed_experts": 128, "n_shared_experts": 1,
                 "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
                 "first_k_dense_replace": 1, "attention_bias": true)"),
      R"("model_type": "glm4v_moe", "depth": 24, "hidden_size": 1536, "intermediate_size": 10944,
         "num_heads": 12, "out_hidden_size": 4096, "image_size": 336, "patch_size": 14,
         "spatial_merge_size": 2, "temporal_patch_size": 2, "attention_bias": false)",
      kUntied));
}

// Gated delta nets and Mamba-2. Counts are those of the model cards of Megatron-Bridge (of
// Qwen3.6 and Qwen3.8 half the bytes of their bf16 tensors), of the others' own; all were looked
// up.
void add_recurrent(std::vector<PublishedModel>& out) {
  const std::string qwen_vit =
      R"("model_type": "qwen3_5", "depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
         "num_heads": 16, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
         "num_position_embeddings": 2304, "deepstack_visual_indexes": [], "out_hidden_size": )";
  const std::string delta =
      R"("head_dim": 256, "attn_output_gate": true, "linear_num_key_heads": 16,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
         "full_attention_interval": 4, "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1,
         "mtp_use_dedicated_embeddings": false, "partial_rotary_factor": 0.25, "linear_num_value_heads": )";
  out.push_back(nested("Qwen3.8-27B", 27781427952, "qwen3_5",
                       decoder("qwen3_5_text", 64, 5120, 24, 4, 17408, 248320, delta + "48"),
                       qwen_vit + "5120", kUntied));
  out.push_back(nested(
      "Qwen3.6-35B-A3B", 35951822704, "qwen3_5_moe",
      R"("model_type": "qwen3_5_moe_text", "num_hidden_layers": 40, "hidden_size": 2048,
         "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 248320,
         "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
         "shared_expert_intermediate_size": 512, )" +
          delta + "32",
      R"("model_type": "qwen3_5_moe", )" + qwen_vit.substr(qwen_vit.find("\"depth\"")) + "2048",
      kUntied));
  out.push_back(
      flat("Qwen3-Coder-Next", 79674391296,
           decoder("qwen3_next", 48, 2048, 16, 2, 5120, 151936,
                   R"("head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
                 "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                 "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "num_experts": 512,
                 "num_experts_per_tok": 10, "moe_intermediate_size": 512,
                 "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1,
                 "mlp_only_layers": [], "partial_rotary_factor": 0.25, )" +
                       std::string(kUntied))));
  const auto mamba = [](int heads, int head_dim, int chunk) {
    return fmt::format(
        R"("head_dim": 128, "mamba_num_heads": {}, "mamba_head_dim": {}, "chunk_size": {},
           "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2,
           "use_conv_bias": true, "use_bias": false, "mamba_proj_bias": false,
           "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2", {})",
        heads, head_dim, chunk, kUntied);
  };
  const std::string pattern = R"(, "hybrid_override_pattern": ")";
  out.push_back(flat("Nemotron-H-8B", 8100852736,
                     decoder("nemotron_h", 52, 4096, 32, 8, 21504, 131072, mamba(128, 64, 128)) +
                         pattern + R"(M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-")"));
  out.push_back(flat("Nemotron-3-Nano-4B", 3973556832,
                     decoder("nemotron_h", 42, 3136, 40, 8, 12544, 131072, mamba(96, 80, 256)) +
                         pattern + R"(M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-")"));
  out.push_back(
      flat("Nemotron-3.5-Lightning-30B-A3B", 32913266240,
           decoder("nemotron_h", 52, 2688, 32, 2, 1856, 131072, mamba(64, 64, 128)) + pattern +
               R"(MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "n_routed_experts": 128,
             "n_shared_experts": 1, "moe_intermediate_size": 1856,
             "moe_shared_expert_intermediate_size": 3712, "num_experts_per_tok": 6,
             "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E")"));
  out.push_back(flat("Mamba-Codestral-7B", 7285403648,
                     R"("model_type": "mamba2", "num_hidden_layers": 64, "hidden_size": 4096,
                        "num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8,
                        "conv_kernel": 4, "expand": 2, "chunk_size": 256, "use_bias": false,
                        "use_conv_bias": true, "vocab_size": 32768, "time_step_rank": 256, )" +
                         kUntied));
}

}  // namespace

std::vector<PublishedModel> published_models() {
  std::vector<PublishedModel> out;
  add_text_models(out);
  add_experts(out);
  add_llava(out);
  add_internvl(out);
  add_qwen_vl(out);
  add_mllama(out);
  add_parallel(out);
  add_others(out);
  add_recurrent(out);
  return out;
}

}  // namespace mllmsim::test
