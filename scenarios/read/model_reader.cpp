#include "scenarios/read/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/read/block_reader.hpp"
#include "scenarios/read/projector_reader.hpp"
#include "scenarios/tree/toml_reader.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr Range kVocabulary{1, 1e8};
constexpr std::int64_t kMostTokensPerTile = 1'000'000;
constexpr std::size_t kMostEncoders = 16;

Llm read_llm(const Node& table, const std::string& key, Problems& problems) {
  TableReader reader(table, key, problems);
  Llm llm;
  llm.name = "llm";
  reader.read("name", llm.name);
  llm.blocks.causal = true;
  reader.read("num_nextn_predict_layers", llm.num_nextn_predict_layers, {0, 16});
  const bool own_weights =
      read_blocks(reader, llm.blocks, llm.other_blocks, llm.num_nextn_predict_layers, problems);
  llm.trained = own_weights;
  reader.require("vocab_size", llm.vocab_size, kVocabulary);
  reader.read("max_position_embeddings", llm.max_position_embeddings, kVocabulary);
  if (!llm.blocks.rotary && !reader.has("max_position_embeddings"))
    reader.problem("max_position_embeddings",
                   "missing: learned positions need it; or is it rotary = true?");
  reader.read("tie_word_embeddings", llm.tie_word_embeddings);
  if (reader.read("trained", llm.trained) && llm.trained && !own_weights)
    reader.problem("trained", "adapters are trained instead of the llm's own weights");
  return llm;
}

// How pictures become tiles: { rule = "tiles", max_tiles = 12 }.
void read_image_rule(TableReader& encoder, ImageRule& rule, Problems& problems) {
  const Node* written = encoder.find("image");
  if (!written) return;
  TableReader reader(*written, encoder.full_key("image"), problems);
  constexpr Range kPixels{1, 1e12}, kTiles{1, 1000};
  reader.require("rule", rule.rule);
  if (rule.rule == Images::tiles) {
    rule.max_tiles = 12;
    reader.read("min_tiles", rule.min_tiles, kTiles);
    reader.read("max_tiles", rule.max_tiles, kTiles);
    reader.read("thumbnail", rule.thumbnail);
    if (rule.min_tiles > rule.max_tiles)
      reader.problem("min_tiles", fmt::format("expected at most max_tiles {}, found {}",
                                              rule.max_tiles, rule.min_tiles));
  }
  if (rule.rule == Images::anyres) {
    std::vector<std::int64_t> sizes;
    reader.read("most_tiles", rule.most_tiles, kTiles);
    if (!reader.require("grids", sizes)) return;
    for (std::size_t i = 0; i + 1 < sizes.size(); i += 2)
      rule.grids.push_back({sizes[i], sizes[i + 1]});
    const auto too_small = [&](const ImageSize& g) {
      return std::min(g.height, g.width) < rule.tile_size;
    };
    if (sizes.empty() || sizes.size() % 2 != 0 ||
        std::any_of(rule.grids.begin(), rule.grids.end(), too_small))
      reader.problem("grids",
                     "expected heights and widths in turn, in pixels, each at least "
                     "image_size");
  }
  if (rule.rule == Images::native) {
    reader.read("min_pixels", rule.min_pixels, kPixels);
    reader.read("max_pixels", rule.max_pixels, kPixels);
    if (rule.max_pixels > 0 && rule.min_pixels > rule.max_pixels)
      reader.problem("min_pixels", fmt::format("expected at most max_pixels {}, found {}",
                                               rule.max_pixels, rule.min_pixels));
  }
  if (rule.rule == Images::native) {
    reader.read("video_min_pixels", rule.video_min_pixels, kPixels);
    reader.read("video_max_pixels", rule.video_max_pixels, kPixels);
    reader.read("video_pixels_per_frame", rule.video_pixels_per_frame);
    if (rule.video_max_pixels > 0 && rule.video_min_pixels > rule.video_max_pixels)
      reader.problem("video_min_pixels",
                     fmt::format("expected at most video_max_pixels {}, found {}",
                                 rule.video_max_pixels, rule.video_min_pixels));
  }
  if (rule.rule == Images::audio) {
    reader.read("seconds_per_tile", rule.seconds_per_tile, {1e-3, 1e5});
  } else {
    reader.read("fps", rule.fps, {1e-3, 1e3});
    reader.read("min_frames", rule.min_frames, {1, 1e6});
    reader.read("max_frames", rule.max_frames, {1, 1e6});
  }
}

// Pictures of any size: tokens follow them, not a tile. image_size may give a tile all the same.
void read_native_tokens(TableReader& reader, Encoder& e, std::int64_t merge) {
  std::int64_t size = 0;
  e.tokens_per_output_token = merge * merge;
  e.image.rule = Images::native;
  reader.read("image_size", size, {1, 1e5});
  reader.read("tokens_per_tile", e.tokens_per_tile, {1, 1e6});
  if (size > 0 && e.image.patch_size > 0) {
    const std::int64_t side = size / e.image.patch_size;
    e.tokens_per_tile = side * side;
  }
  if (e.tokens_per_tile % e.tokens_per_output_token != 0)
    reader.problem(size > 0 ? "image_size" : "tokens_per_tile",
                   fmt::format("expected tokens that merge {} by {}, found {}", merge, merge,
                               e.tokens_per_tile));
  e.output_tokens_per_tile = e.tokens_per_tile / e.tokens_per_output_token;
}

// Tokens in and out of a tile. Needs either the image's sizes or the counts themselves.
void read_tokens(TableReader& reader, Encoder& e, double shuffle) {
  std::int64_t image = 0, patch = 0;
  bool class_token = true, drop_class_token = true;
  reader.read("class_token", class_token);
  reader.read("drop_class_token", drop_class_token);
  const bool has_patch = reader.read("patch_size", patch);
  std::int64_t frames = 1, merge = 0;
  reader.read("temporal_patch_size", frames, {1, 100});
  e.image.patch_size = patch;
  e.image.temporal_patch_size = frames;
  if (reader.read("spatial_merge_size", merge, {1, 100})) {
    if (!has_patch) reader.problem("patch_size", "missing: spatial_merge_size needs it");
    e.patch_values = 3 * patch * patch * frames;
    return read_native_tokens(reader, e, merge);
  }
  const bool has_image = reader.read("image_size", image);
  e.image.tile_size = image;
  const bool has_tokens = reader.read("tokens_per_tile", e.tokens_per_tile);
  const bool has_output = reader.read("output_tokens_per_tile", e.output_tokens_per_tile);
  if (has_patch) e.patch_values = 3 * patch * patch * frames;
  if (has_image && has_patch) {
    const std::int64_t side = image / patch;  // what is over is not seen, as in a convolution
    if (side == 0)
      return reader.problem("image_size",
                            fmt::format("expected at least patch_size {}, found {}", patch, image));
    if (side * side >= kMostTokensPerTile)
      return reader.problem("image_size", fmt::format("{} patches are too many", side * side));
    const double output_side = static_cast<double>(side) * shuffle;
    if (!has_tokens) e.tokens_per_tile = side * side + (class_token ? 1 : 0);
    if (!has_output) {
      if (output_side != std::round(output_side))
        return reader.problem(
            "pixel_shuffle", fmt::format("{} patches a side times {} is not whole", side, shuffle));
      e.output_tokens_per_tile = std::llround(output_side * output_side);
      if (class_token && !drop_class_token) ++e.output_tokens_per_tile;
    }
  }
  if (reader.has("image_size") && reader.has("patch_size")) return;
  for (const char* key : {"tokens_per_tile", "output_tokens_per_tile"})
    if (!reader.has(key)) reader.problem(key, "missing: give it, or image_size and patch_size");
}

Encoder read_encoder(const Node& table, const std::string& key, std::int64_t llm_width,
                     Problems& problems) {
  TableReader reader(table, key, problems);
  Encoder e;
  e.name = "encoder";
  double shuffle = 1;
  reader.read("name", e.name);
  e.trained = read_blocks(reader, e.blocks, e.other_blocks, 0, problems);
  const bool own_weights = e.trained;
  reader.read("pixel_shuffle", shuffle, {1e-3, 1});
  read_tokens(reader, e, shuffle);
  read_image_rule(reader, e.image, problems);
  if ((e.image.rule == Images::native) != (e.tokens_per_output_token > 0))
    reader.problem("image", "rule \"native\" and spatial_merge_size need each other");
  if ((e.image.rule == Images::tiles || e.image.rule == Images::anyres) &&
      (e.image.tile_size == 0 || e.image.patch_size == 0))
    reader.problem("image", "needs image_size and patch_size");
  read_projector(reader, e, shuffle, llm_width, problems);
  reader.read("position_embeddings", e.position_embeddings, {1, 1e7});
  if (reader.read("trained", e.trained) && e.trained && !own_weights)
    reader.problem("trained", "adapters are trained instead of the encoder's own weights");
  reader.read("projector_trained", e.projector_trained);
  return e;
}

}  // namespace

Model read_model(const Node& table, const std::string& key, Problems& problems) {
  TableReader reader(table, key, problems);
  Model model;
  std::string description;
  reader.read("name", model.name);
  reader.read("description", description);
  if (const Node* llm = reader.find("llm"))
    model.llm = read_llm(*llm, reader.full_key("llm"), problems);
  else
    reader.problem("llm", "missing: an encoder alone cannot be trained here");
  const Node* encoders = reader.find("encoders");
  if (!encoders) return model;
  if (!encoders->is<Node::Array>()) {
    reader.problem("encoders",
                   fmt::format("expected a list of tables, found {}", describe(*encoders)));
    return model;
  }
  const auto& list = encoders->as<Node::Array>();
  if (list.size() > kMostEncoders) {
    reader.problem("encoders", fmt::format("expected at most {} encoders, found {}", kMostEncoders,
                                           list.size()));
    return model;
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    model.encoders.push_back(read_encoder(list[i], fmt::format("{}.encoders.{}", key, i),
                                          model.llm.blocks.hidden_size, problems));
  return model;
}

}  // namespace mllmsim::scenarios
