// Whole models by model_type: what joins a vision tower to an LLM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/hf/hf_config.hpp"
#include "scenarios/hf/models.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace json = boost::json;

// A multimodal config while its encoder's table is completed.
struct Joined {
  ConfigObject& whole;
  ConfigObject& vision;
  PartTable& encoder;
  std::int64_t llm_width;

  std::int64_t width() const { return encoder.number("hidden_size"); }
  std::int64_t merged_width() const {
    const std::int64_t merge =
        std::clamp<std::int64_t>(encoder.number("spatial_merge_size"), 1, 100);
    return std::clamp<std::int64_t>(width(), 0, 1'000'000) * merge * merge;
  }
  // sizes[0] -> sizes[1] -> ...
  void projector(const std::vector<std::int64_t>& sizes, bool norm, bool bias) const {
    encoder.set("projector", sizes);
    encoder.set("projector_norm", norm);
    encoder.set("projector_bias", bias);
  }
};

using Join = void (*)(const Joined&);

struct WholeFamily {
  const char* model_type;
  const char* text_type;  // where the part does not say
  const char* vision_type;
  Join join;
};

PartTable images(const Joined& j, const char* rule) {
  PartTable table(j.whole.file());
  table.set("rule", rule);
  return table;
}

void join_llava(const Joined& j) {
  std::int64_t inputs = j.width();
  const json::value* layers = j.whole.find("vision_feature_layer");
  if (layers && layers->is_array())
    inputs = std::clamp<std::int64_t>(inputs, 0, 1'000'000) *
             static_cast<std::int64_t>(std::clamp<std::size_t>(layers->as_array().size(), 1, 100));
  j.projector({inputs, j.llm_width, j.llm_width}, false,
              j.whole.flag("multimodal_projector_bias").value_or(true));
  const std::string select = j.whole.text("vision_feature_select_strategy").value_or("default");
  if (select == "full")
    j.encoder.set("drop_class_token", false);
  else if (select != "default")
    j.whole.problem(
        "vision_feature_select_strategy",
        fmt::format("expected \"default\" or \"full\", found \"{}\"", select.substr(0, 60)));
}

void llava(const Joined& j) {
  join_llava(j);
  j.encoder.set("image", images(j, "one").take());
}

// image_grid_pinpoints: pixels of the grids a picture may be fitted to.
void llava_next(const Joined& j) {
  join_llava(j);
  PartTable image = images(j, "anyres");
  const json::value* grids = j.whole.find("image_grid_pinpoints");
  std::vector<std::int64_t> sizes;
  if (grids && grids->is_array())
    for (const json::value& grid : grids->as_array())
      if (grid.is_array() && grid.as_array().size() == 2)
        for (const json::value& n : grid.as_array())
          sizes.push_back(n.is_int64() ? n.as_int64() : 0);
  if (sizes.empty() || *std::min_element(sizes.begin(), sizes.end()) <= 0)
    return j.whole.problem("image_grid_pinpoints", "expected a list of [height, width]");
  image.set("grids", sizes);
  const std::string ratio = j.whole.text("vision_aspect_ratio").value_or("");
  constexpr std::string_view kAtMost = "anyres_max_";
  if (ratio.starts_with(kAtMost))
    image.set_if("most_tiles", to_number<std::int64_t>(ratio.substr(kAtMost.size())));
  else if (!ratio.empty())
    j.whole.problem("vision_aspect_ratio",
                    fmt::format("expected \"anyres_max_N\", found \"{}\"", ratio.substr(0, 60)));
  j.encoder.set("image", image.take());
}

void internvl(const Joined& j) {
  if (const auto size = j.whole.number("force_image_size")) j.encoder.set("image_size", *size);
  const double ratio = j.whole.real("downsample_ratio").value_or(0.5);
  j.encoder.set("pixel_shuffle", ratio);
  if (ratio > 0 && ratio <= 1)
    j.projector({std::llround(static_cast<double>(std::min<std::int64_t>(j.width(), 1'000'000)) /
                              (ratio * ratio)),
                 j.llm_width, j.llm_width},
                true, true);
  j.whole.ignore({"min_dynamic_patch", "max_dynamic_patch", "use_thumbnail"});
  if (!j.whole.flag("dynamic_image_size").value_or(true))
    return j.encoder.set("image", images(j, "one").take());
  PartTable image = images(j, "tiles");
  image.set("min_tiles", j.whole.number("min_dynamic_patch").value_or(1));
  image.set("max_tiles", j.whole.number("max_dynamic_patch").value_or(12));
  image.set("thumbnail", j.whole.flag("use_thumbnail").value_or(true));
  j.encoder.set("image", image.take());
}

struct PixelRule {
  std::int64_t min_pixels, max_pixels;              // of a picture
  std::int64_t video_min_pixels, video_max_pixels;  // of a frame, or of all; 0: as a picture
  bool per_frame;
};

// A merger of two linear layers as wide as the merged patches.
void qwen_vl(const Joined& j, const PixelRule& rule, const char* output = "out_hidden_size") {
  if (const auto stated = j.vision.number(output); stated && *stated != j.llm_width)
    j.vision.problem(
        output, fmt::format("expected the LLM's hidden_size, {}, found {}", j.llm_width, *stated));
  j.projector({j.merged_width(), j.merged_width(), j.llm_width}, true, true);
  PartTable image = images(j, "native");
  image.set("min_pixels", rule.min_pixels);
  image.set("max_pixels", rule.max_pixels);
  if (rule.video_max_pixels > 0) {
    image.set("video_min_pixels", rule.video_min_pixels);
    image.set("video_max_pixels", rule.video_max_pixels);
    image.set("video_pixels_per_frame", rule.per_frame);
  }
  j.encoder.set("image", image.take());
}
// Limits are those of the processors' classes and, of videos, of qwen_vl_utils; Qwen3-VL's are in
// its preprocessor_config.json and video_preprocessor_config.json, which other models' may change.
constexpr std::int64_t kCell = 784;  // 28 x 28 pixels become one token
constexpr PixelRule kQwen2{4 * kCell, 1280 * kCell, 128 * kCell, 768 * kCell, true};
void qwen2_vl(const Joined& j) { qwen_vl(j, kQwen2, "hidden_size"); }
void qwen2_5_vl(const Joined& j) { qwen_vl(j, kQwen2); }
void qwen3_vl(const Joined& j) { qwen_vl(j, {65536, 16777216, 4096, 25165824, false}); }

// Merged patches through a matrix to the output's width, another, and a gated MLP.
void glm4v(const Joined& j) {
  qwen_vl(j, {16 * kCell, 15000 * kCell, 0, 0, false});
  const std::int64_t out = j.encoder.number("intermediate_size");
  const std::int64_t gated = j.vision.number("intermediate_size").value_or(13696);
  j.projector({j.merged_width(), out, out, gated, j.llm_width}, true, false);
  j.encoder.set("projector_gated", true);
}

void kimi_vl(const Joined& j) { qwen_vl(j, {1, 4096 * kCell, 0, 0, false}); }

// Pooled to mm_tokens_per_image, a norm and one matrix.
void gemma3(const Joined& j) {
  j.encoder.set("output_tokens_per_tile", j.whole.number("mm_tokens_per_image").value_or(256));
  j.projector({j.width(), j.llm_width}, true, false);
  j.encoder.set("image", images(j, "one").take());
}

// A picture is up to max_num_tiles tiles that see each other, padded to all of them, and a tile's
// tokens to a multiple of 8; features of several blocks go side by side through one matrix. The LLM
// sees them by cross-attention, beside one token for each picture.
void mllama(const Joined& j) {
  const std::int64_t tiles = j.vision.number("max_num_tiles").value_or(4);
  const std::int64_t patch = std::max<std::int64_t>(1, j.encoder.number("patch_size"));
  const std::int64_t side = j.encoder.number("image_size") / patch;
  if (tiles < 1 || tiles > 100)
    return j.vision.problem("max_num_tiles", fmt::format("expected 1 to 100, found {}", tiles));
  if (side < 1 || side > 1000) return;  // reported with the encoder
  const std::int64_t tokens = side * side + 1;
  j.encoder.set("tokens_per_tile", tiles * ((tokens + 7) / 8 * 8));
  j.encoder.set("output_tokens_per_tile", tiles * tokens);
  const auto features = j.vision.numbers("intermediate_layers_indices");
  const auto more =
      static_cast<std::int64_t>(features ? std::min<std::size_t>(features->size(), 100) : 5);
  const std::int64_t width = std::clamp<std::int64_t>(j.width(), 0, 1'000'000) * (1 + more);
  if (const auto stated = j.vision.number("vision_output_dim"); stated && *stated != width)
    j.vision.problem("vision_output_dim",
                     fmt::format("expected hidden_size times 1 + the intermediate layers, {}, "
                                 "found {}",
                                 width, *stated));
  j.projector({width, j.llm_width}, false, true);
  // A position for each token, and for each token of each tile of each arrangement of tiles (and of
  // none); two sets for tiles.
  const json::value* ratios = j.vision.find("supported_aspect_ratios");
  const auto arrangements =
      ratios && ratios->is_array()
          ? static_cast<std::int64_t>(std::min<std::size_t>(ratios->as_array().size(), 1000))
          : 8;
  j.encoder.set("position_embeddings",
                tokens + (arrangements + 1) * tiles * tokens + 2 * (arrangements + 1) * tiles);
  j.encoder.set("image", images(j, "one").take());
}

constexpr WholeFamily kWhole[] = {
    {"llava", "llama", "clip_vision_model", llava},
    {"llava_next", "llama", "clip_vision_model", llava_next},
    {"llava_onevision", "qwen2", "siglip_vision_model", llava_next},
    {"internvl", "qwen2", "internvl_vision", internvl},
    {"internvl_chat", "", "intern_vit_6b", internvl},
    {"qwen2_vl", "qwen2_vl_text", "qwen2_vl", qwen2_vl},
    {"qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_vl", qwen2_5_vl},
    {"qwen3_vl", "qwen3_vl_text", "qwen3_vl", qwen3_vl},
    {"qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_vl_moe", qwen3_vl},
    {"qwen3_5", "qwen3_5_text", "qwen3_5", qwen3_vl},
    {"qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_moe", qwen3_vl},
    {"gemma3", "gemma3_text", "siglip_vision_model", gemma3},
    {"glm4v_moe", "glm4v_moe_text", "glm4v_moe", glm4v},
    {"kimi_vl", "deepseek_v3", "moonvit", kimi_vl},
    {"mllama", "mllama_text_model", "mllama_vision_model", mllama},
};

const WholeFamily* whole_family(const std::string& type) {
  const auto* family = std::find_if(std::begin(kWhole), std::end(kWhole),
                                    [&](const WholeFamily& f) { return f.model_type == type; });
  return family == std::end(kWhole) ? nullptr : family;
}

class Reading {
 public:
  explicit Reading(const std::filesystem::path& file)
      : file_(file.string()),
        json_(parse_json(read_file(file, kSmallFile), file_)),
        whole_(file_, "", object_of(json_, file_), problems_),
        type_(whole_.text("model_type").value_or("")) {}

  Node part(ModelPart which) {
    const bool llm = which == ModelPart::llm;
    const WholeFamily* family = whole_family(type_);
    std::optional<ConfigObject> inner = llm ? text() : whole_.object("vision_config");
    ConfigObject& config = inner ? *inner : whole_;
    PartTable out = llm ? read_text_model(config, family ? family->text_type : "")
                        : read_vision_model(config, family ? family->vision_type : "");
    if (llm && inner) tie(out);
    if (!llm && inner) {
      if (const auto size = whole_.number("force_image_size")) out.set("image_size", *size);
      out.set_if("pixel_shuffle", whole_.real("downsample_ratio"));
    }
    whole_.ignore({"vision_config", "text_config", "llm_config"});
    config.refuse_rest(type_.empty() ? "this model" : type_);
    problems_.throw_if_any();
    return out.take();
  }

  Node model() {
    const WholeFamily* family = whole_family(type_);
    PartTable model(file_);
    if (!family) {
      if (is_multimodal()) refuse_model_type(whole_, type_, whole_types());
      const auto known = text_model_types();
      if (std::find(known.begin(), known.end(), type_) == known.end()) {
        std::vector<std::string> all = whole_types();
        all.insert(all.end(), known.begin(), known.end());
        refuse_model_type(whole_, type_, all);
      }
    }
    std::optional<ConfigObject> inner = text();
    ConfigObject& text_config = inner ? *inner : whole_;
    PartTable llm = read_text_model(text_config, family ? family->text_type : "");
    if (inner) tie(llm);
    name(llm, text_config, inner && family ? family->text_type : type_);
    if (family) model.set("encoders", encoders(*family, llm.number("hidden_size")));
    name(model, whole_, type_);
    model.set("llm", llm.take());
    if (inner) inner->refuse_rest(type_);
    whole_.refuse_rest(type_);
    problems_.throw_if_any();
    return model.take();
  }

  bool is_multimodal() { return whole_.has("vision_config"); }

 private:
  static const json::object& object_of(const json::value& value, const std::string& file) {
    if (!value.is_object()) throw UserError(file, "", "expected a JSON object");
    return value.as_object();
  }

  static std::vector<std::string> whole_types() {
    std::vector<std::string> types;
    for (const WholeFamily& f : kWhole) types.emplace_back(f.model_type);
    return types;
  }

  std::optional<ConfigObject> text() {
    std::optional<ConfigObject> inner = whole_.object("text_config");
    return inner ? inner : whole_.object("llm_config");
  }

  // The text's own word counts; the whole's where it has none.
  void tie(PartTable& llm) {
    const auto of_whole = whole_.flag("tie_word_embeddings");
    const json::value* text = json_.as_object().if_contains("text_config");
    if (!text) text = json_.as_object().if_contains("llm_config");
    if (of_whole && text && text->is_object() && !text->as_object().contains("tie_word_embeddings"))
      llm.set("tie_word_embeddings", *of_whole);
  }

  // Where the config came from, if it says so; otherwise its type.
  static void name(PartTable& out, ConfigObject& config, const std::string& type) {
    std::string path = config.text("_name_or_path").value_or("");
    path = path.substr(path.find_last_of('/') + 1);
    const bool plain = !path.empty() && path.size() <= 100 &&
                       std::all_of(path.begin(), path.end(), [](unsigned char c) {
                         return std::isalnum(c) || c == '-' || c == '_' || c == '.';
                       });
    out.set("name", plain && path.front() != '.' ? path : type);
  }

  Node encoders(const WholeFamily& family, std::int64_t llm_width) {
    Node list;
    list.value = Node::Array{};
    list.position = {file_, 0, 0};
    std::optional<ConfigObject> vision = whole_.object("vision_config");
    if (!vision) {
      whole_.problem("vision_config", "missing");
      return list;
    }
    PartTable encoder = read_vision_model(*vision, family.vision_type);
    name(encoder, *vision, family.vision_type);
    family.join({whole_, *vision, encoder, llm_width});
    vision->refuse_rest(type_);
    list.as<Node::Array>().push_back(encoder.take());
    return list;
  }

  Problems problems_;
  std::string file_;
  json::value json_;
  ConfigObject whole_;
  std::string type_;
};

}  // namespace

Node read_hf_config(const std::filesystem::path& file, ModelPart part) {
  return Reading(file).part(part);
}

Node read_hf_model(const std::filesystem::path& file) { return Reading(file).model(); }

bool is_multimodal_config(const std::filesystem::path& file) {
  try {
    return Reading(file).is_multimodal();
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace mllmsim::scenarios
