// Vision towers by model_type, without what is between them and an LLM.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/hf/models.hpp"

namespace mllmsim::scenarios {
namespace {

using ReadTower = void (*)(ConfigObject&, PartTable&);

struct VisionFamily {
  const char* model_type;
  ReadTower read;
};

void set_flags(PartTable& out, const char* norm, const std::vector<Flag>& flags) {
  out.set("norm", norm);
  for (const Flag& flag : flags) out.set(flag.key, flag.value);
}

void vit_numbers(ConfigObject& config, PartTable& out) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"})
    out.set_if(key, config.number(key));
  out.set_if("image_size", config.side("image_size"));
  out.set_if("patch_size", config.side("patch_size"));
}

void vit(ConfigObject& config, PartTable& out, bool class_token) {
  set_flags(out, "layer_norm",
            {{"qkv_bias", true}, {"linear_bias", true}, {"class_token", class_token}});
  vit_numbers(config, out);
  out.set_if("qkv_bias", config.flag("qkv_bias"));
}
void with_class_token(ConfigObject& config, PartTable& out) { vit(config, out, true); }
void without_class_token(ConfigObject& config, PartTable& out) { vit(config, out, false); }

// InternVL's published configs carry the sizes of experts, and that there are none.
void intern_experts(ConfigObject& config) {
  if (config.flag("use_moe").value_or(false))
    return config.problem("use_moe", "expected false: experts of a ViT are not modelled");
  config.ignore({"num_experts", "num_routed_experts", "num_shared_experts", "moe_intermediate_size",
                 "moe_coeff_ratio", "moe_output_scale", "shared_expert_intermediate_size",
                 "capacity_factor", "eval_capacity_factor"});
}

// InternVL's own code and transformers' name the same things differently.
void intern_vit(ConfigObject& config, PartTable& out) {
  set_flags(
      out, "rms_norm",
      {{"qkv_bias", false}, {"linear_bias", true}, {"layer_scale", true}, {"class_token", true}});
  vit_numbers(config, out);
  out.set_if("qkv_bias", config.flag("qkv_bias"));
  out.set_if("qk_norm", config.flag("qk_normalization"));
  out.set_if("norm", config.text("norm_type"));
  out.set("packed_qkv", true);
  intern_experts(config);
  const auto rate = config.real("drop_path_rate");
  out.set("drop_path", rate && *rate > 0);
}

void internvl_vision(ConfigObject& config, PartTable& out) {
  set_flags(
      out, "layer_norm",
      {{"qkv_bias", false}, {"linear_bias", true}, {"layer_scale", true}, {"class_token", true}});
  vit_numbers(config, out);
  out.set_if("qkv_bias", config.flag("attention_bias"));
  out.set_if("qk_norm", config.flag("use_qk_norm"));
  out.set_if("norm", config.text("norm_type"));
}

// Patches of any picture: merged side by side behind the last block, two frames in each.
void qwen_patches(ConfigObject& config, PartTable& out, std::int64_t patch = 14) {
  out.set("patch_size", config.side("patch_size").value_or(patch));
  out.set("spatial_merge_size", config.number("spatial_merge_size").value_or(2));
  out.set("temporal_patch_size", config.side("temporal_patch_size").value_or(2));
  out.set("class_token", false);
  out.set("rotary", true);
  out.set("packed_qkv", true);
}

void qwen_vision(ConfigObject& config, PartTable& out, std::int64_t patch = 14) {
  qwen_patches(config, out, patch);
  out.set_if("num_hidden_layers", config.number("depth"));
  out.set_if("num_attention_heads", config.number("num_heads"));
}

void qwen2_vl_vision(ConfigObject& config, PartTable& out) {
  qwen_vision(config, out);
  set_flags(out, "layer_norm", {{"qkv_bias", true}, {"linear_bias", true}});
  const std::int64_t width = config.number("embed_dim").value_or(1280);
  config.ignore({"hidden_size"});  // of the output
  out.set("num_hidden_layers", config.number("depth").value_or(32));
  out.set("num_attention_heads", config.number("num_heads").value_or(16));
  out.set("hidden_size", width);
  const double ratio = config.real("mlp_ratio").value_or(4);
  if (ratio > 0 && ratio < 100 && width > 0 && width < 1'000'000)
    out.set("intermediate_size", static_cast<std::int64_t>(static_cast<double>(width) * ratio));
}

// Attention within windows of window_size pixels, but for some blocks.
void qwen2_5_vl_vision(ConfigObject& config, PartTable& out) {
  qwen_vision(config, out);
  set_flags(out, "rms_norm", {{"qkv_bias", true}, {"linear_bias", true}, {"gated_mlp", true}});
  out.set("num_hidden_layers", config.number("depth").value_or(32));
  out.set("num_attention_heads", config.number("num_heads").value_or(16));
  out.set("hidden_size", config.number("hidden_size").value_or(3584));
  out.set("intermediate_size", config.number("intermediate_size").value_or(3420));
  const std::int64_t window = config.number("window_size").value_or(112);
  const std::int64_t side = window / std::max<std::int64_t>(1, out.number("patch_size"));
  if (side < 1 || side > 100'000)
    config.problem("window_size",
                   fmt::format("expected pixels of whole patches, found {}", window));
  else
    out.set("attention_chunk_size", side * side);
  out.set(
      "full_attention_layers",
      config.numbers("fullatt_block_indexes").value_or(std::vector<std::int64_t>{7, 15, 23, 31}));
}

// Of Qwen3.5: Qwen3-VL's without features of earlier blocks.
void qwen3_5_vision(ConfigObject& config, PartTable& out) {
  qwen_vision(config, out, 16);
  set_flags(out, "layer_norm", {{"qkv_bias", true}, {"linear_bias", true}});
  out.set("num_hidden_layers", config.number("depth").value_or(27));
  out.set("num_attention_heads", config.number("num_heads").value_or(16));
  out.set("hidden_size", config.number("hidden_size").value_or(1152));
  out.set("intermediate_size", config.number("intermediate_size").value_or(4304));
  out.set("position_embeddings", config.number("num_position_embeddings").value_or(2304));
}

void qwen3_vl_vision(ConfigObject& config, PartTable& out) {
  qwen3_5_vision(config, out);
  const auto layers =
      config.numbers("deepstack_visual_indexes").value_or(std::vector<std::int64_t>{8, 16, 24});
  if (!layers.empty()) out.set("deepstack_features", static_cast<std::int64_t>(layers.size()));
}

// Its blocks' MLPs are as wide as its output; intermediate_size is the merger's.
void glm4v_vision(ConfigObject& config, PartTable& out) {
  qwen_vision(config, out);
  set_flags(out, "rms_norm", {{"qkv_bias", false}, {"linear_bias", false}, {"gated_mlp", true}});
  out.set_if("qkv_bias", config.flag("attention_bias"));
  out.set("hidden_size", config.number("hidden_size").value_or(1536));
  out.set("intermediate_size", config.number("out_hidden_size").value_or(4096));
  const std::int64_t patch = std::max<std::int64_t>(1, out.number("patch_size"));
  const std::int64_t side = config.side("image_size").value_or(336) / patch;
  if (side > 0 && side < 10'000) out.set("position_embeddings", side * side);
}

void moonvit(ConfigObject& config, PartTable& out) {
  qwen_patches(config, out);
  vit_numbers(config, out);
  set_flags(out, "layer_norm", {{"qkv_bias", true}, {"linear_bias", true}});
  out.set_if("spatial_merge_size", config.side("merge_kernel_size"));
  out.set("temporal_patch_size", std::int64_t{1});
  const std::int64_t height = config.number("init_pos_emb_height").value_or(64);
  const std::int64_t width = config.number("init_pos_emb_width").value_or(64);
  if (height > 0 && height < 10'000 && width > 0 && width < 10'000)
    out.set("position_embeddings", height * width);
}

// Blocks for a picture's tiles, then gated ones of the same shape.
void mllama_vision(ConfigObject& config, PartTable& out) {
  set_flags(out, "layer_norm", {{"qkv_bias", false}, {"linear_bias", true}, {"class_token", true}});
  vit_numbers(config, out);
  out.set("hidden_size", config.number("hidden_size").value_or(1280));
  out.set("intermediate_size", config.number("intermediate_size").value_or(5120));
  out.set("image_size", config.side("image_size").value_or(448));
  out.set("patch_size", config.side("patch_size").value_or(14));
  auto heads = config.number("attention_heads");
  if (!heads) heads = config.number("num_attention_heads");
  out.set("num_attention_heads", heads.value_or(16));
  const std::int64_t plain = config.number("num_hidden_layers").value_or(32);
  const std::int64_t global = config.number("num_global_layers").value_or(8);
  if (plain < 1 || global < 0 || plain + global > 10'000)
    return config.problem("num_global_layers",
                          fmt::format("expected 1 to 10000 blocks, found {} + {}", plain, global));
  out.set("num_hidden_layers", plain + global);
  std::vector<std::int64_t> gated;
  for (std::int64_t i = plain; i < plain + global; ++i) gated.push_back(i);
  if (!gated.empty()) out.set("gated_layers", gated);
}

constexpr VisionFamily kFamilies[] = {
    {"vit", with_class_token},
    {"clip_vision_model", with_class_token},
    {"siglip_vision_model", without_class_token},
    {"intern_vit_6b", intern_vit},
    {"internvl_vision", internvl_vision},
    {"qwen2_vl", qwen2_vl_vision},
    {"qwen2_vl_vision", qwen2_vl_vision},
    {"qwen2_5_vl", qwen2_5_vl_vision},
    {"qwen2_5_vl_vision", qwen2_5_vl_vision},
    {"qwen3_vl", qwen3_vl_vision},
    {"qwen3_vl_vision", qwen3_vl_vision},
    {"qwen3_vl_moe", qwen3_vl_vision},
    {"qwen3_vl_moe_vision", qwen3_vl_vision},
    {"qwen3_5", qwen3_5_vision},
    {"qwen3_5_vision", qwen3_5_vision},
    {"qwen3_5_moe", qwen3_5_vision},
    {"qwen3_5_moe_vision", qwen3_5_vision},
    {"glm4v_moe", glm4v_vision},
    {"glm4v_moe_vision", glm4v_vision},
    {"moonvit", moonvit},
    {"mllama_vision_model", mllama_vision},
};

}  // namespace

std::vector<std::string> vision_model_types() {
  std::vector<std::string> types;
  for (const VisionFamily& f : kFamilies) types.emplace_back(f.model_type);
  return types;
}

PartTable read_vision_model(ConfigObject& config, const std::string& type) {
  const std::string name = config.text("model_type").value_or(type);
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const VisionFamily& f) { return f.model_type == name; });
  if (family == std::end(kFamilies)) refuse_model_type(config, name, vision_model_types());
  PartTable out(config.file());
  family->read(config, out);
  for (const char* key : {"num_channels", "in_channels", "in_chans"})
    if (const auto channels = config.number(key); channels && *channels != 3)
      config.problem(key, fmt::format("expected 3, found {}", *channels));
  return out;
}

}  // namespace mllmsim::scenarios
