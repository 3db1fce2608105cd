// Language models with recurrences: Qwen3-Next, Qwen3.5, Nemotron-H, Mamba-2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/hf/models.hpp"

namespace mllmsim::scenarios {
namespace {

// Which layers of Qwen's are attention: layer_types, or every full_attention_interval-th.
void qwen_layers(ConfigObject& config, PartTable& out) {
  const auto types = config.texts("layer_types");
  const std::int64_t every =
      std::max<std::int64_t>(1, config.number("full_attention_interval").value_or(4));
  std::vector<std::int64_t> full;
  const std::int64_t layers =
      std::clamp<std::int64_t>(out.number("num_hidden_layers"), 0, kMostLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!types ? (i + 1) % every == 0 : at < types->size() && (*types)[at] == "full_attention")
      full.push_back(i);
  }
  for (const std::string& type : types.value_or(std::vector<std::string>{}))
    if (type != "full_attention" && type != "linear_attention") {
      config.problem("layer_types", fmt::format("expected \"full_attention\" or "
                                                "\"linear_attention\", found \"{}\"",
                                                type.substr(0, 60)));
      break;
    }
  out.set("full_attention_layers", full);
}

void gated_delta(ConfigObject& config, PartTable& out) {
  PartTable r(config.file());
  r.set("rule", "gated_delta");
  r.set("num_key_heads", config.number("linear_num_key_heads").value_or(16));
  r.set("num_value_heads", config.number("linear_num_value_heads").value_or(32));
  r.set("key_head_dim", config.number("linear_key_head_dim").value_or(128));
  r.set("value_head_dim", config.number("linear_value_head_dim").value_or(128));
  r.set("conv_kernel", config.number("linear_conv_kernel_dim").value_or(4));
  out.set("recurrence", r.take());
  out.set("attention_gate", config.flag("attn_output_gate").value_or(true));
  config.ignore({"mamba_ssm_dtype"});
  if (config.flag("mtp_use_dedicated_embeddings").value_or(false))
    config.problem("mtp_use_dedicated_embeddings",
                   "expected false: embeddings that only multi-token prediction uses are not "
                   "modelled");
  qwen_layers(config, out);
  if (const std::int64_t more = config.number("mtp_num_hidden_layers").value_or(0); more > 0)
    out.set("num_nextn_predict_layers", more);
}

void mamba2(ConfigObject& config, PartTable& out, std::int64_t heads, std::int64_t chunk) {
  PartTable r(config.file());
  if (!config.flag("use_conv_bias").value_or(true))
    config.problem("use_conv_bias", "expected true: only convolutions with a bias are modelled");
  for (const char* key : {"use_bias", "mamba_proj_bias"})
    if (config.flag(key).value_or(false))
      config.problem(key, "expected false: biases of the projections are not modelled");
  config.ignore({"expand", "mamba_hidden_act", "mamba_ssm_cache_dtype", "use_mamba_kernels"});
  r.set("rule", "mamba2");
  r.set("num_value_heads", heads);
  r.set("num_key_heads", config.number("n_groups").value_or(8));
  r.set("conv_kernel", config.number("conv_kernel").value_or(4));
  r.set("chunk_size", config.number("chunk_size").value_or(chunk));
  const bool nemotron = config.has("ssm_state_size");
  r.set("key_head_dim", config.number(nemotron ? "ssm_state_size" : "state_size").value_or(128));
  r.set("value_head_dim", config.number(nemotron ? "mamba_head_dim" : "head_dim").value_or(64));
  out.set("recurrence", r.take());
}

// A letter for each layer: M a Mamba layer, * attention, - an MLP, E experts.
std::string pattern_of(ConfigObject& config) {
  if (const auto written = config.text("hybrid_override_pattern")) return *written;
  std::string pattern;
  const char* key = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  for (const std::string& type : config.texts(key).value_or(std::vector<std::string>{})) {
    if (type == "linear_attention" || type == "mamba")
      pattern += 'M';
    else if (type == "full_attention" || type == "attention")
      pattern += '*';
    else if (type == "mlp")
      pattern += '-';
    else if (type == "moe")
      pattern += 'E';
    else
      config.problem(key, fmt::format("expected \"linear_attention\", \"full_attention\", \"mlp\" "
                                      "or \"moe\", found \"{}\"",
                                      type.substr(0, 60)));
  }
  if (pattern.empty())
    config.problem("hybrid_override_pattern", "missing: which layer is of which kind");
  return pattern;
}

}  // namespace

void qwen3_next_rest(ConfigObject& config, PartTable& out) {
  gated_delta(config, out);
  out.set("num_experts", config.number("num_experts").value_or(512));
  out.set("num_experts_per_tok", config.number("num_experts_per_tok").value_or(10));
  out.set("moe_intermediate_size", config.number("moe_intermediate_size").value_or(512));
  out.set("shared_expert_intermediate_size",
          config.number("shared_expert_intermediate_size").value_or(512));
  out.set_if("decoder_sparse_step", config.number("decoder_sparse_step"));
  if (const auto layers = config.numbers("mlp_only_layers"); layers && !layers->empty())
    out.set("mlp_only_layers", *layers);
}

void qwen3_5_rest(ConfigObject& config, PartTable& out) { gated_delta(config, out); }

void qwen3_5_moe_rest(ConfigObject& config, PartTable& out) {
  gated_delta(config, out);
  const std::int64_t width = config.number("moe_intermediate_size").value_or(512);
  out.set("num_experts", config.number("num_experts").value_or(256));
  out.set("num_experts_per_tok", config.number("num_experts_per_tok").value_or(8));
  out.set("moe_intermediate_size", width);
  out.set("shared_expert_intermediate_size",
          config.number("shared_expert_intermediate_size").value_or(512));
  if (!out.has("intermediate_size")) out.set("intermediate_size", width);
}

void nemotron_h_rest(ConfigObject& config, PartTable& out) {
  const std::string pattern = pattern_of(config);
  const auto layers = static_cast<std::int64_t>(pattern.size());
  if (const auto stated = config.number("num_hidden_layers"); stated && *stated != layers)
    config.problem("num_hidden_layers",
                   fmt::format("expected a letter of the pattern for each layer, {}, found {}",
                               layers, *stated));
  out.set("num_hidden_layers", layers);
  out.set("hybrid_override_pattern", pattern);
  mamba2(config, out, config.number("mamba_num_heads").value_or(128), 128);
  config.ignore(
      {"mlp_hidden_act", "moe_shared_expert_overlap", "mtp_layers_block_type", "layer_types"});
  const std::string more = config.text("mtp_hybrid_override_pattern").value_or("*E");
  if (const std::int64_t n = config.number("num_nextn_predict_layers").value_or(0); n > 0) {
    out.set("num_nextn_predict_layers", n);
    if (more != "*E")
      config.problem(
          "mtp_hybrid_override_pattern",
          fmt::format("expected \"*E\", attention and experts, found \"{}\"", more.substr(0, 60)));
  }
  if (config.has("moe_latent_size"))
    config.problem("moe_latent_size", "experts in a latent space are not modelled; expected null");
  for (const char* key : {"n_routed_experts", "n_shared_experts", "moe_intermediate_size",
                          "moe_shared_expert_intermediate_size", "num_experts_per_tok"})
    config.find(key);
  if (pattern.find('E') == std::string::npos) return;
  out.set("num_experts", config.number("n_routed_experts").value_or(8));
  out.set("num_experts_per_tok", config.number("num_experts_per_tok").value_or(2));
  out.set("moe_intermediate_size", config.number("moe_intermediate_size").value_or(7688));
  if (config.number("n_shared_experts").value_or(1) > 0)
    out.set("shared_expert_intermediate_size",
            config.number("moe_shared_expert_intermediate_size").value_or(7688));
}

void mamba2_rest(ConfigObject& config, PartTable& out) {
  const std::int64_t layers =
      std::clamp<std::int64_t>(out.number("num_hidden_layers"), 0, kMostLayers);
  out.set("hybrid_override_pattern", std::string(static_cast<std::size_t>(layers), 'M'));
  config.ignore({"time_step_rank"});
  const std::int64_t heads = config.number("num_heads").value_or(128);
  const std::int64_t inner = heads * config.number("head_dim").value_or(64);
  const double stated =
      config.real("expand").value_or(2) * static_cast<double>(out.number("hidden_size"));
  if (std::abs(stated - static_cast<double>(inner)) > 0.5)
    config.problem("expand", fmt::format("expected num_heads times head_dim, {}, over hidden_size, "
                                         "found {} times that size",
                                         inner, config.real("expand").value_or(2)));
  mamba2(config, out, heads, 256);
}

}  // namespace mllmsim::scenarios
