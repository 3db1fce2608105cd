// Language models by model_type: what the class in transformers fixes, and its config's keys.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/hf/models.hpp"

namespace mllmsim::scenarios {
namespace {

// What a family has beyond numbers and flags.
using Rest = void (*)(ConfigObject&, PartTable&);

struct TextFamily {
  const char* model_type;
  const char* norm;
  std::vector<Flag> fixed;
  std::vector<Rename> numbers;
  std::vector<Rename> flags;  // only if the config states them; they come after `fixed`
  std::vector<Default> defaults;
  Rest rest;
};

std::int64_t layers_of(const PartTable& out) {
  return std::clamp<std::int64_t>(out.number("num_hidden_layers"), 0, kMostLayers);
}

// Layers without the window, by their index.
template <class IsFull>
void set_full_layers(PartTable& out, IsFull is_full) {
  std::vector<std::int64_t> full;
  for (std::int64_t i = 0; i < layers_of(out); ++i)
    if (is_full(i)) full.push_back(i);
  out.set("full_attention_layers", full);
}

// layer_types: a word a layer, of which only these two are known (others are linear attention and
// the like). Empty if there is none.
std::optional<std::vector<std::string>> layer_types(ConfigObject& config) {
  auto types = config.texts("layer_types");
  if (!types) return types;
  for (const std::string& type : *types)
    if (type != "full_attention" && type != "sliding_attention") {
      config.problem("layer_types", fmt::format("expected \"full_attention\" or "
                                                "\"sliding_attention\", found \"{}\"",
                                                type.substr(0, 60)));
      break;
    }
  return types;
}

// False if there is none.
bool read_layer_types(ConfigObject& config, PartTable& out) {
  const auto types = layer_types(config);
  if (!types) return false;
  set_full_layers(out, [&](std::int64_t i) {
    return static_cast<std::size_t>(i) < types->size() &&
           (*types)[static_cast<std::size_t>(i)] == "full_attention";
  });
  return true;
}

// Of families without windows.
void all_full(ConfigObject& config, PartTable&) {
  const auto types = layer_types(config);
  if (types && std::find(types->begin(), types->end(), "sliding_attention") != types->end())
    config.problem("layer_types", "expected \"full_attention\": this model_type has no windows");
}

void gpt2_rest(ConfigObject&, PartTable& out) {
  const std::int64_t width = out.number("hidden_size");
  if (!out.has("intermediate_size") && width > 0 && width < (1LL << 40))
    out.set("intermediate_size", 4 * width);
}

// A window for all layers, or those that layer_types names.
void window_rest(ConfigObject& config, PartTable& out) {
  if (!config.has("sliding_window")) return all_full(config, out);
  out.set_if("sliding_window", config.number("sliding_window"));
  read_layer_types(config, out);
}

// Mistral's class has a window where the config does not say null.
void mistral_rest(ConfigObject& config, PartTable& out) {
  if (!config.states("sliding_window")) out.set("sliding_window", std::int64_t{4096});
  window_rest(config, out);
}

// Qwen's window is off unless asked for, or null, and begins at layer max_window_layers.
void qwen_rest(ConfigObject& config, PartTable& out) {
  config.ignore({"sliding_window", "max_window_layers"});
  const bool asked = config.flag("use_sliding_window").value_or(false);
  if (!asked || (config.states("sliding_window") && !config.has("sliding_window"))) {
    layer_types(config);
    return;
  }
  out.set("sliding_window", config.number("sliding_window").value_or(4096));
  const std::int64_t first = config.number("max_window_layers").value_or(28);
  if (!read_layer_types(config, out))
    set_full_layers(out, [&](std::int64_t i) { return i < first; });
}

void gemma3_rest(ConfigObject& config, PartTable& out) {
  out.set("sliding_window", config.number("sliding_window").value_or(4096));
  auto pattern = config.number("sliding_window_pattern");
  if (!pattern) pattern = config.number("_sliding_window_pattern");
  const std::int64_t every = std::max<std::int64_t>(1, pattern.value_or(6));
  if (!read_layer_types(config, out))
    set_full_layers(out, [&](std::int64_t i) { return (i + 1) % every == 0; });
}

// A class with experts has them whether its config says so or not.
struct ExpertDefaults {
  std::int64_t experts, per_token;
};

void local_experts(ConfigObject& config, PartTable& out, const ExpertDefaults& defaults) {
  out.set("num_experts", config.number("num_local_experts").value_or(defaults.experts));
  out.set("num_experts_per_tok", config.number("num_experts_per_tok").value_or(defaults.per_token));
  out.set("moe_intermediate_size", out.number("intermediate_size"));
}

void mixtral_rest(ConfigObject& config, PartTable& out) {
  window_rest(config, out);
  local_experts(config, out, {8, 2});
}

void gpt_oss_rest(ConfigObject& config, PartTable& out) {
  config.ignore({"experts_per_token"});  // a second name
  local_experts(config, out, {128, 4});
  out.set("sliding_window", config.number("sliding_window").value_or(128));
  if (!read_layer_types(config, out))
    set_full_layers(out, [](std::int64_t i) { return i % 2 == 1; });
}

struct QwenExperts {
  ExpertDefaults routed;
  std::int64_t width, shared_width;
};

void qwen_moe(ConfigObject& config, PartTable& out, const QwenExperts& defaults) {
  qwen_rest(config, out);
  out.set("num_experts", config.number("num_experts").value_or(defaults.routed.experts));
  out.set("num_experts_per_tok",
          config.number("num_experts_per_tok").value_or(defaults.routed.per_token));
  out.set("moe_intermediate_size", config.number("moe_intermediate_size").value_or(defaults.width));
  const auto shared = config.number("shared_expert_intermediate_size");
  if (shared || defaults.shared_width > 0)
    out.set("shared_expert_intermediate_size", shared.value_or(defaults.shared_width));
  out.set_if("decoder_sparse_step", config.number("decoder_sparse_step"));
  if (const auto layers = config.numbers("mlp_only_layers"); layers && !layers->empty())
    out.set("mlp_only_layers", *layers);
}
void qwen2_moe_rest(ConfigObject& config, PartTable& out) {
  qwen_moe(config, out, {{60, 4}, 1408, 5632});
}
void qwen3_moe_rest(ConfigObject& config, PartTable& out) {
  qwen_moe(config, out, {{128, 8}, 768, 0});
}
void qwen3_vl_moe_rest(ConfigObject& config, PartTable& out) {
  qwen_moe(config, out, {{60, 4}, 1408, 0});
}

// DeepSeek's experts, which GLM and Kimi have as well. Every published config states their sizes.
void routed_experts(ConfigObject& config, PartTable& out) {
  all_full(config, out);
  config.ignore({"moe_router_dtype", "moe_router_force_load_balancing", "num_local_experts",
                 "num_experts"});  // other names of n_routed_experts
  if (config.number("moe_layer_freq").value_or(1) != 1)
    config.problem("moe_layer_freq",
                   "expected 1: experts in every layer behind the first dense "
                   "ones");
  const auto experts = config.number("n_routed_experts");
  for (const char* key : {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
                          "first_k_dense_replace"})
    if (!config.has(key)) config.problem(key, "missing");
  if (!experts) return;
  const auto width = config.number("moe_intermediate_size");
  out.set("num_experts", *experts);
  out.set_if("moe_intermediate_size", width);
  out.set_if("num_experts_per_tok", config.number("num_experts_per_tok"));
  out.set_if("first_k_dense_replace", config.number("first_k_dense_replace"));
  const std::int64_t shared = config.number("n_shared_experts").value_or(0);
  if (shared > 0 && shared < 1000 && width && *width > 0 && *width < 1'000'000)
    out.set("shared_expert_intermediate_size", shared * *width);
  if (const std::int64_t more = config.number("num_nextn_predict_layers").value_or(0); more > 0)
    out.set("num_nextn_predict_layers", more);
}

void deepseek_rest(ConfigObject& config, PartTable& out) {
  routed_experts(config, out);
  for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    out.set_if(key, config.number(key));
    if (!config.has(key)) config.problem(key, "missing");
  }
  out.set_if("q_lora_rank", config.number("q_lora_rank"));
  if (config.flag("attention_bias").value_or(false))
    config.problem("attention_bias", "expected false: biases of latents are not modelled");
}

void glm_rest(ConfigObject& config, PartTable& out) {
  routed_experts(config, out);
  out.set_if("qk_norm_per_head", config.flag("use_qk_norm"));
}

void mllama_rest(ConfigObject& config, PartTable& out) {
  all_full(config, out);
  out.set("cross_attention_layers",
          config.numbers("cross_attention_layers")
              .value_or(std::vector<std::int64_t>{3, 8, 13, 18, 23, 28, 33, 38}));
}

void neox_rest(ConfigObject& config, PartTable& out) {
  out.set("parallel_residual", config.flag("use_parallel_residual").value_or(true));
}

// Attention and MLP from one norm.
void parallel_rest(ConfigObject&, PartTable& out) {
  out.set("parallel_residual", true);
  out.set("shared_norm", true);
}

void cohere_rest(ConfigObject& config, PartTable& out) {
  parallel_rest(config, out);
  out.set_if("qk_norm_per_head", config.flag("use_qk_norm"));
}

// Two generations: one key-value head for all and one norm, or groups of heads and two norms.
void falcon_rest(ConfigObject& config, PartTable& out) {
  const std::int64_t width = out.number("hidden_size");
  if (!out.has("intermediate_size") && width > 0 && width < (1LL << 40))
    out.set("intermediate_size", 4 * width);
  const bool groups = config.flag("new_decoder_architecture").value_or(false);
  const bool one_head = config.flag("multi_query").value_or(true);
  const std::int64_t heads = out.number("num_attention_heads");
  const auto given = config.number("num_kv_heads");
  out.set("num_key_value_heads", groups ? given.value_or(heads) : one_head ? 1 : heads);
  const bool parallel = groups || config.flag("parallel_attn").value_or(true);
  const std::int64_t norms = config.number("num_ln_in_parallel_attn").value_or(groups ? 2 : 1);
  out.set("parallel_residual", parallel);
  out.set("shared_norm", parallel && norms == 1);
  if (const auto bias = config.flag("bias")) {
    out.set("qkv_bias", *bias);
    out.set("linear_bias", *bias);
  }
  if (config.flag("alibi").value_or(false))
    config.problem("alibi", "expected false: biases of positions in attention are not modelled");
}

const std::vector<Rename> kLlamaNumbers = {{"hidden_size", "hidden_size"},
                                           {"num_hidden_layers", "num_hidden_layers"},
                                           {"num_attention_heads", "num_attention_heads"},
                                           {"num_key_value_heads", "num_key_value_heads"},
                                           {"head_dim", "head_dim"},
                                           {"intermediate_size", "intermediate_size"},
                                           {"vocab_size", "vocab_size"},
                                           {"max_position_embeddings", "max_position_embeddings"}};
const std::vector<Rename> kGpt2Numbers = {
    {"hidden_size", "n_embd"},         {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"}, {"intermediate_size", "n_inner"},
    {"vocab_size", "vocab_size"},      {"max_position_embeddings", "n_positions"}};
const std::vector<Rename> kMambaNumbers = {{"hidden_size", "hidden_size"},
                                           {"num_hidden_layers", "num_hidden_layers"},
                                           {"vocab_size", "vocab_size"}};
const std::vector<Rename> kFalconNumbers = {{"hidden_size", "hidden_size"},
                                            {"num_hidden_layers", "num_hidden_layers"},
                                            {"num_attention_heads", "num_attention_heads"},
                                            {"intermediate_size", "ffn_hidden_size"},
                                            {"vocab_size", "vocab_size"}};
const std::vector<Default> kLlamaDefaults = {{"hidden_size", 4096},
                                             {"num_hidden_layers", 32},
                                             {"num_attention_heads", 32},
                                             {"intermediate_size", 11008},
                                             {"vocab_size", 32000}};

TextFamily swiglu(const char* type, std::vector<Flag> more, std::vector<Rename> flags,
                  Rest rest = all_full, std::vector<Default> defaults = {}) {
  std::vector<Flag> fixed = {
      {"gated_mlp", true}, {"rotary", true}, {"qkv_bias", false}, {"linear_bias", false}};
  fixed.insert(fixed.end(), more.begin(), more.end());
  flags.push_back({"tie_word_embeddings", "tie_word_embeddings"});
  return {type, "rms_norm", std::move(fixed), kLlamaNumbers, std::move(flags), std::move(defaults),
          rest};
}

std::vector<TextFamily> all_families() {
  const std::vector<Flag> qkv_bias = {{"qkv_bias", true}},
                          head_norms = {{"qk_norm_per_head", true}},
                          packed = {{"packed_qkv", true}};
  const std::vector<Rename> attention_bias = {{"qkv_bias", "attention_bias"}};
  return {
      swiglu("llama", {}, {{"qkv_bias", "attention_bias"}, {"linear_bias", "mlp_bias"}}, all_full,
             kLlamaDefaults),
      swiglu("mistral", {}, {}, mistral_rest,
             {{"hidden_size", 4096},
              {"num_hidden_layers", 32},
              {"num_attention_heads", 32},
              {"num_key_value_heads", 8},
              {"intermediate_size", 14336},
              {"vocab_size", 32000}}),
      swiglu("phi3", packed, {}, window_rest),
      swiglu("qwen2", qkv_bias, {}, qwen_rest),
      swiglu("qwen2_vl", qkv_bias, {}, qwen_rest),
      swiglu("qwen2_vl_text", qkv_bias, {}, qwen_rest),
      swiglu("qwen2_5_vl", qkv_bias, {}, qwen_rest),
      swiglu("qwen2_5_vl_text", qkv_bias, {}, qwen_rest),
      swiglu("qwen3", head_norms, attention_bias, qwen_rest, {{"head_dim", 128}}),
      swiglu("qwen3_vl_text", head_norms, attention_bias, qwen_rest, {{"head_dim", 128}}),
      swiglu("qwen2_moe", qkv_bias, {{"qkv_bias", "qkv_bias"}}, qwen2_moe_rest),
      swiglu("qwen3_moe", head_norms, attention_bias, qwen3_moe_rest),
      swiglu("qwen3_vl_moe_text", head_norms, attention_bias, qwen3_vl_moe_rest),
      swiglu("qwen3_next", head_norms, attention_bias, qwen3_next_rest, {{"head_dim", 256}}),
      swiglu("qwen3_5_text", head_norms, attention_bias, qwen3_5_rest, {{"head_dim", 256}}),
      swiglu("qwen3_5_moe_text", head_norms, attention_bias, qwen3_5_moe_rest, {{"head_dim", 256}}),
      swiglu("mixtral", {}, {}, mixtral_rest),
      swiglu("gpt_oss", {{"qkv_bias", true}, {"linear_bias", true}}, attention_bias, gpt_oss_rest,
             {{"head_dim", 64}, {"num_key_value_heads", 8}}),
      swiglu("deepseek_v3", {}, attention_bias, deepseek_rest),
      swiglu("kimi_k2", {}, attention_bias, deepseek_rest),
      swiglu("glm4_moe", {}, attention_bias, glm_rest),
      swiglu("glm4v_moe_text", qkv_bias, attention_bias, glm_rest),
      swiglu("gemma3_text",
             {{"qk_norm_per_head", true}, {"post_norms", true}, {"tie_word_embeddings", true}},
             attention_bias, gemma3_rest,
             {{"hidden_size", 2304},
              {"num_hidden_layers", 26},
              {"num_attention_heads", 8},
              {"num_key_value_heads", 4},
              {"head_dim", 256},
              {"intermediate_size", 9216},
              {"vocab_size", 262208}}),
      swiglu("mllama_text_model", {}, {}, mllama_rest,
             {{"hidden_size", 4096},
              {"num_hidden_layers", 40},
              {"num_attention_heads", 32},
              {"num_key_value_heads", 8},
              {"intermediate_size", 14336},
              {"vocab_size", 128256}}),
      swiglu("internlm2", packed, {{"qkv_bias", "bias"}, {"linear_bias", "bias"}}),
      {"gpt2",
       "layer_norm",
       {{"packed_qkv", true},
        {"qkv_bias", true},
        {"linear_bias", true},
        {"tie_word_embeddings", true}},
       kGpt2Numbers,
       {{"tie_word_embeddings", "tie_word_embeddings"}},
       {},
       gpt2_rest},
      {"nemotron_h",  // its attention has no positions at all
       "rms_norm",
       {{"qkv_bias", false}, {"linear_bias", false}, {"rotary", true}},
       kLlamaNumbers,
       {{"qkv_bias", "attention_bias"},
        {"linear_bias", "mlp_bias"},
        {"tie_word_embeddings", "tie_word_embeddings"}},
       {{"hidden_size", 4096},
        {"num_attention_heads", 32},
        {"num_key_value_heads", 8},
        {"head_dim", 128},
        {"intermediate_size", 21504},
        {"vocab_size", 131072}},
       nemotron_h_rest},
      {"mamba2",
       "rms_norm",
       {{"qkv_bias", false}, {"linear_bias", false}, {"rotary", true}},
       kMambaNumbers,
       {{"tie_word_embeddings", "tie_word_embeddings"}},
       {{"hidden_size", 4096}, {"num_hidden_layers", 64}, {"vocab_size", 32768}},
       mamba2_rest},
      {"gpt_neox",
       "layer_norm",
       {{"packed_qkv", true}, {"qkv_bias", true}, {"linear_bias", true}, {"rotary", true}},
       kLlamaNumbers,
       {{"qkv_bias", "attention_bias"}, {"tie_word_embeddings", "tie_word_embeddings"}},
       {},
       neox_rest},
      {"phi",
       "layer_norm",
       {{"qkv_bias", true}, {"linear_bias", true}, {"rotary", true}},
       kLlamaNumbers,
       {{"qk_norm", "qk_layernorm"}, {"tie_word_embeddings", "tie_word_embeddings"}},
       {},
       parallel_rest},
      {"cohere",
       "layer_norm",
       {{"qkv_bias", false},
        {"linear_bias", false},
        {"rotary", true},
        {"gated_mlp", true},
        {"tie_word_embeddings", true}},
       kLlamaNumbers,
       {{"qkv_bias", "attention_bias"}, {"tie_word_embeddings", "tie_word_embeddings"}},
       {},
       cohere_rest},
      {"falcon",
       "layer_norm",
       {{"packed_qkv", true},
        {"qkv_bias", false},
        {"linear_bias", false},
        {"rotary", true},
        {"tie_word_embeddings", true}},
       kFalconNumbers,
       {{"tie_word_embeddings", "tie_word_embeddings"}},
       {{"vocab_size", 65024}},
       falcon_rest},
  };
}

const std::vector<TextFamily>& text_families() {
  static const std::vector<TextFamily> kFamilies = all_families();
  return kFamilies;
}

}  // namespace

std::vector<std::string> text_model_types() {
  std::vector<std::string> types;
  for (const TextFamily& f : text_families()) types.emplace_back(f.model_type);
  return types;
}

PartTable read_text_model(ConfigObject& config, const std::string& type) {
  const std::string name = config.text("model_type").value_or(type);
  const auto& all = text_families();
  const auto family = std::find_if(all.begin(), all.end(),
                                   [&](const TextFamily& f) { return f.model_type == name; });
  if (family == all.end()) refuse_model_type(config, name, text_model_types());
  PartTable out(config.file());
  out.set("norm", family->norm);
  for (const Flag& flag : family->fixed) out.set(flag.key, flag.value);
  for (const Rename& name_of : family->numbers) {
    auto value = config.number(name_of.theirs);
    const auto known =
        std::find_if(family->defaults.begin(), family->defaults.end(),
                     [&](const Default& d) { return std::string(d.key) == name_of.theirs; });
    if (!value && !config.has(name_of.theirs) && known != family->defaults.end())
      value = known->value;
    out.set_if(name_of.ours, value);
  }
  for (const Rename& flag : family->flags) out.set_if(flag.ours, config.flag(flag.theirs));
  family->rest(config, out);
  return out;
}

}  // namespace mllmsim::scenarios
