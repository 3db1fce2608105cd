#include "scenarios/read/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/tree/problems.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace json = boost::json;

struct Flag {
  const char* key;
  bool value;
};
struct Rename {
  const char* ours;
  const char* theirs;
};

// A model class: what its code fixes, and where its config says the rest.
struct Family {
  const char* model_type;
  ModelPart part;
  const char* norm;
  std::vector<Flag> fixed;
  std::vector<Rename> numbers;
  std::vector<Rename> flags;  // only if the config states them; they come after `fixed`
};

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
const std::vector<Rename> kVitNumbers = {{"hidden_size", "hidden_size"},
                                         {"num_hidden_layers", "num_hidden_layers"},
                                         {"num_attention_heads", "num_attention_heads"},
                                         {"intermediate_size", "intermediate_size"},
                                         {"image_size", "image_size"},
                                         {"patch_size", "patch_size"}};

Family swiglu(const char* type, bool qkv_bias, std::vector<Rename> flags) {
  flags.push_back({"tie_word_embeddings", "tie_word_embeddings"});
  return {type,
          ModelPart::llm,
          "rms_norm",
          {{"gated_mlp", true}, {"rotary", true}, {"qkv_bias", qkv_bias}, {"linear_bias", false}},
          kLlamaNumbers,
          std::move(flags)};
}
Family vit(const char* type, bool class_token) {
  return {type,         ModelPart::encoder,
          "layer_norm", {{"qkv_bias", true}, {"linear_bias", true}, {"class_token", class_token}},
          kVitNumbers,  {{"qkv_bias", "qkv_bias"}}};
}

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      swiglu("llama", false, {{"qkv_bias", "attention_bias"}, {"linear_bias", "mlp_bias"}}),
      swiglu("mistral", false, {}),
      swiglu("qwen2", true, {}),
      swiglu("internlm2", false, {{"qkv_bias", "bias"}, {"linear_bias", "bias"}}),
      {"gpt2",
       ModelPart::llm,
       "layer_norm",
       {{"qkv_bias", true}, {"linear_bias", true}, {"tie_word_embeddings", true}},
       kGpt2Numbers,
       {{"tie_word_embeddings", "tie_word_embeddings"}}},
      {"gpt_neox",
       ModelPart::llm,
       "layer_norm",
       {{"qkv_bias", true}, {"linear_bias", true}, {"rotary", true}},
       kLlamaNumbers,
       {{"qkv_bias", "attention_bias"}, {"tie_word_embeddings", "tie_word_embeddings"}}},
      vit("vit", true),
      vit("clip_vision_model", true),
      vit("siglip_vision_model", false),
      {"intern_vit_6b",
       ModelPart::encoder,
       "rms_norm",
       {{"qkv_bias", false}, {"linear_bias", true}, {"layer_scale", true}, {"class_token", true}},
       kVitNumbers,
       {{"qkv_bias", "qkv_bias"}, {"qk_norm", "qk_normalization"}}},
  };
  return kFamilies;
}

class Converter {
 public:
  Converter(const std::filesystem::path& file, ModelPart part)
      : file_(file.string()), part_(part) {}

  Node convert(const json::value& whole) {
    if (!whole.is_object()) throw UserError(file_, "", "expected a JSON object");
    const json::object& config = part_config(whole.as_object());
    const Family& family = family_of(config);
    set("norm", std::string(family.norm));
    for (const Flag& flag : family.fixed) set(flag.key, flag.value);
    for (const Rename& name : family.numbers) number(config, name);
    for (const Rename& name : family.flags) flag(config, name);
    special_cases(whole.as_object(), config, family);
    problems_.throw_if_any();
    return std::move(out_);
  }

 private:
  // The part's own object inside a multimodal config, or the config itself.
  const json::object& part_config(const json::object& whole) {
    const bool llm = part_ == ModelPart::llm;
    const auto names = llm ? std::vector<const char*>{"text_config", "llm_config"}
                           : std::vector<const char*>{"vision_config"};
    for (const char* name : names) {
      const json::value* inner = whole.if_contains(name);
      if (!inner) continue;
      if (!inner->is_object()) throw UserError(file_, name, "expected a JSON object");
      prefix_ = std::string(name) + ".";
      return inner->as_object();
    }
    return whole;
  }

  const Family& family_of(const json::object& config) {
    const json::value* type = config.if_contains("model_type");
    const bool is_text = type && type->is_string();
    const std::string name = is_text ? std::string(type->as_string()) : "";
    std::vector<std::string> known;
    for (const Family& family : families()) {
      if (family.part != part_) continue;
      if (family.model_type == name) return family;
      known.emplace_back(family.model_type);
    }
    throw UserError(
        file_, prefix_ + "model_type",
        fmt::format("expected {}, found {} (other models are written out in TOML){}", one_of(known),
                    is_text ? '"' + name.substr(0, 60) + '"' : "none", did_you_mean(name, known)));
  }

  void number(const json::object& config, const Rename& name) {
    const json::value* value = config.if_contains(name.theirs);
    if (!value || value->is_null()) return;  // null: the class's own rule, ours has the same
    if (value->is_int64())
      set(name.ours, value->as_int64());
    else
      problem(name.theirs, "expected a whole number", *value);
  }

  void flag(const json::object& config, const Rename& name) {
    const json::value* value = config.if_contains(name.theirs);
    if (!value || value->is_null()) return;
    if (value->is_bool())
      set(name.ours, value->as_bool());
    else
      problem(name.theirs, "expected true or false", *value);
  }

  void special_cases(const json::object& whole, const json::object& config, const Family& family) {
    const std::string type = family.model_type;
    if (type == "gpt2" && !out_.find("intermediate_size") && out_.find("hidden_size")) {
      const std::int64_t width = out_.find("hidden_size")->as<std::int64_t>();
      if (width > 0 && width < (1LL << 40)) set("intermediate_size", 4 * width);
    }
    if (type == "intern_vit_6b") {
      if (const json::value* norm = config.if_contains("norm_type"); norm && norm->is_string())
        set("norm", std::string(norm->as_string()));
      const json::value* rate = config.if_contains("drop_path_rate");
      set("drop_path", rate && rate->is_number() && rate->to_number<double>() > 0);
    }
    if (part_ == ModelPart::encoder && !prefix_.empty()) {
      number(whole, {"image_size", "force_image_size"});  // InternVL: what it is trained with
      if (const json::value* ratio = whole.if_contains("downsample_ratio");
          ratio && ratio->is_number())
        set("pixel_shuffle", ratio->to_number<double>());
    }
  }

  template <class T>
  void set(const char* key, T value) {
    Node& node = out_.as<Node::Table>()[key];
    node.value = std::move(value);
    node.position = {file_, 0, 0};
  }
  void problem(const char* key, const char* expected, const json::value& found) {
    problems_.add({file_, 0, 0}, prefix_ + key,
                  fmt::format("{}, found {}", expected, line_json(found).substr(0, 60)));
  }

  std::string file_;
  ModelPart part_;
  std::string prefix_;  // "vision_config." inside a multimodal config
  Problems problems_;
  Node out_;
};

}  // namespace

Node read_hf_config(const std::filesystem::path& file, ModelPart part) {
  return Converter(file, part).convert(parse_json(read_file(file, kSmallFile), file.string()));
}

}  // namespace mllmsim::scenarios
