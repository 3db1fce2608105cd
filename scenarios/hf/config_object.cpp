#include "scenarios/hf/config_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/json_writer.hpp"

namespace mllmsim::scenarios {
namespace {

namespace json = boost::json;

// Parts of key names that speak of cost.
constexpr std::string_view kCostWords[] = {
    "expert",       "moe",          "lora_rank",    "window",      "chunk",      "mamba",
    "ssm",          "cross_",       "nextn",        "mtp",         "conv_",      "hybrid",
    "linear_",      "recurrent",    "deepstack",    "audio",       "parallel_",  "index_",
    "per_layer",    "altup",        "laurel",       "num_global_", "attn_layer", "state_size",
    "layer_type",   "block_type",   "shared_layer", "output_gate", "attn_gate",  "qk_norm",
    "qk_layernorm", "_bias",        "compress",     "sparse_attn", "delta_",     "expansion",
    "softcap",      "bidirectional"};

// Of these a name alone (of a checkpoint, a kind) says that there is one.
constexpr std::string_view kPartWords[] = {"tower",   "resampler",  "perceiver",
                                           "qformer", "abstractor", "mm_projector"};

// Keys of an object that make it a tower.
constexpr std::array<const char*, 6> kTowerKeys{"hidden_size", "num_hidden_layers", "d_model",
                                                "depth",       "embed_dim",         "n_layer"};

bool is_empty(const json::value& v) {
  if (v.is_null()) return true;
  if (v.is_bool()) return !v.as_bool();
  if (v.is_number()) return v.to_number<double>() == 0;
  if (v.is_string()) return true;  // names of implementations, not sizes
  if (v.is_array()) return v.as_array().empty();
  return v.as_object().empty();
}

bool is_tower(const json::value& v) {
  return v.is_object() && std::any_of(kTowerKeys.begin(), kTowerKeys.end(),
                                      [&](const char* key) { return v.as_object().contains(key); });
}

template <std::size_t n>
bool contains_any(std::string_view key, const std::string_view (&words)[n]) {
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return key.find(word) != std::string_view::npos;
  });
}

// "mm_vision_tower": "openai/clip-...": a part of the model that other code builds.
bool names_a_part(std::string_view key, const json::value& value) {
  if (!contains_any(key, kPartWords)) return false;
  if (!value.is_string()) return !is_empty(value);
  return !value.as_string().empty() && value.as_string() != "none";
}

bool speaks_of_cost(std::string_view key) {
  // Ids of tokens, losses and activations of such parts cost nothing.
  for (const std::string_view harmless :
       {"token", "loss", "_act", "jitter", "_coef", "std", "dropout", "_tp"})
    if (key.find(harmless) != std::string_view::npos) return false;
  return contains_any(key, kCostWords);
}

}  // namespace

const json::value* ConfigObject::find(const char* key) {
  known_.insert(key);
  const json::value* value = object_.if_contains(key);
  return value && !value->is_null() ? value : nullptr;
}

void ConfigObject::problem(const char* key, std::string message) {
  problems_.add({file_, 0, 0}, prefix_ + key, std::move(message));
}

void ConfigObject::expected(const char* key, const char* what, const json::value& found) {
  problem(key, fmt::format("expected {}, found {}", what, line_json(found).substr(0, 60)));
}

std::optional<std::int64_t> ConfigObject::number(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_int64()) return value->as_int64();
  expected(key, "a whole number", *value);
  return std::nullopt;
}

std::optional<double> ConfigObject::real(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_number()) return value->to_number<double>();
  expected(key, "a number", *value);
  return std::nullopt;
}

std::optional<bool> ConfigObject::flag(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_bool()) return value->as_bool();
  expected(key, "true or false", *value);
  return std::nullopt;
}

std::optional<std::string> ConfigObject::text(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return std::string(value->as_string());
  expected(key, "a string", *value);
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> ConfigObject::numbers(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  std::vector<std::int64_t> out;
  if (value->is_array())
    for (const json::value& v : value->as_array())
      if (v.is_int64()) out.push_back(v.as_int64());
  if (value->is_array() && out.size() == value->as_array().size()) return out;
  expected(key, "a list of whole numbers", *value);
  return std::nullopt;
}

std::optional<std::vector<std::string>> ConfigObject::texts(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  std::vector<std::string> out;
  if (value->is_array())
    for (const json::value& v : value->as_array())
      if (v.is_string()) out.emplace_back(v.as_string());
  if (value->is_array() && out.size() == value->as_array().size()) return out;
  expected(key, "a list of strings", *value);
  return std::nullopt;
}

std::optional<std::int64_t> ConfigObject::side(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_int64()) return value->as_int64();
  if (value->is_array() && !value->as_array().empty()) {
    const json::array& list = value->as_array();
    if (list.front().is_int64() && std::all_of(list.begin(), list.end(), [&](const json::value& v) {
          return v == list.front();
        }))
      return list.front().as_int64();
  }
  expected(key, "a whole number, or a list of equal ones", *value);
  return std::nullopt;
}

std::optional<ConfigObject> ConfigObject::object(const char* key) {
  const json::value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_object())
    return ConfigObject(file_, prefix_ + key + ".", value->as_object(), problems_);
  expected(key, "a JSON object", *value);
  return std::nullopt;
}

void ConfigObject::refuse_rest(const std::string& model_type) {
  for (const auto& [name, value] : object_) {
    const std::string key(name);
    if (known_.contains(key)) continue;
    if (is_tower(value) || names_a_part(key, value))
      problem(key.c_str(), fmt::format("a part of the model that is not known of {}; write the "
                                       "model out in TOML, with the parts it has",
                                       model_type));
    else if (speaks_of_cost(key) && !is_empty(value))
      problem(key.c_str(), fmt::format("changes what layers cost and is not modelled for {}, found "
                                       "{}",
                                       model_type, line_json(value).substr(0, 60)));
  }
}

}  // namespace mllmsim::scenarios
