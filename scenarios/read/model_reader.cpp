#include "scenarios/read/model_reader.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/tree/toml_reader.hpp"

namespace mllmsim::scenarios {
namespace {

// What may be said instead of the sizes: one linear layer, or two.
enum class Projector : std::uint8_t { linear, mlp2 };

}  // namespace
}  // namespace mllmsim::scenarios

template <>
struct mllmsim::Names<mllmsim::scenarios::Projector> {
  static constexpr std::array<std::string_view, 2> list{"linear", "mlp2"};
};

namespace mllmsim::scenarios {
namespace {

constexpr Range kLayers{1, 10'000};
constexpr Range kWidth{1, 1e5};
constexpr Range kVocabulary{1, 1e8};
constexpr std::int64_t kMostTokensPerTile = 1'000'000;
constexpr std::size_t kMostEncoders = 16;

// Keys that llm and encoders share.
void read_blocks(TableReader& reader, Transformer& t) {
  reader.require("num_hidden_layers", t.num_hidden_layers, kLayers);
  reader.require("hidden_size", t.hidden_size, kWidth);
  reader.require("num_attention_heads", t.num_attention_heads, kWidth);
  reader.require("intermediate_size", t.intermediate_size);
  t.num_key_value_heads = t.num_attention_heads;
  reader.read("num_key_value_heads", t.num_key_value_heads);
  if (t.num_attention_heads > 0 && t.num_attention_heads % t.num_key_value_heads != 0)
    reader.problem("num_key_value_heads",
                   fmt::format("expected a divisor of num_attention_heads {}, found {}",
                               t.num_attention_heads, t.num_key_value_heads));
  const bool sized = t.hidden_size > 0 && t.num_attention_heads > 0;
  if (!reader.read("head_dim", t.head_dim) && sized) {
    t.head_dim = t.hidden_size / t.num_attention_heads;
    if (t.hidden_size % t.num_attention_heads != 0)
      reader.problem("head_dim", fmt::format("missing, and hidden_size {} does not divide by "
                                             "num_attention_heads {}",
                                             t.hidden_size, t.num_attention_heads));
  }
  reader.read("gated_mlp", t.gated_mlp);
  reader.read("norm", t.norm);
  reader.read("qk_norm", t.qk_norm);
  reader.read("qkv_bias", t.qkv_bias);
  reader.read("linear_bias", t.linear_bias);
  reader.read("layer_scale", t.layer_scale);
  reader.read("drop_path", t.drop_path);
  reader.read("rotary", t.rotary);
  reader.read("uneven_heads", t.uneven_heads);
}

Llm read_llm(const Node& table, const std::string& key, Problems& problems) {
  TableReader reader(table, key, problems);
  Llm llm;
  llm.name = "llm";
  reader.read("name", llm.name);
  llm.blocks.causal = true;
  read_blocks(reader, llm.blocks);
  reader.require("vocab_size", llm.vocab_size, kVocabulary);
  reader.read("max_position_embeddings", llm.max_position_embeddings, kVocabulary);
  if (!llm.blocks.rotary && !reader.has("max_position_embeddings"))
    reader.problem("max_position_embeddings",
                   "missing: learned positions need it; or is it rotary = true?");
  reader.read("tie_word_embeddings", llm.tie_word_embeddings);
  reader.read("trained", llm.trained);
  return llm;
}

// Tokens in and out of a tile. Needs either the image's sizes or the counts themselves.
void read_tokens(TableReader& reader, Encoder& e, double shuffle) {
  std::int64_t image = 0, patch = 0;
  bool class_token = true;
  reader.read("class_token", class_token);
  const bool has_image = reader.read("image_size", image);
  const bool has_patch = reader.read("patch_size", patch);
  const bool has_tokens = reader.read("tokens_per_tile", e.tokens_per_tile);
  const bool has_output = reader.read("output_tokens_per_tile", e.output_tokens_per_tile);
  if (has_patch) e.patch_values = 3 * patch * patch;
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
    }
  }
  if (reader.has("image_size") && reader.has("patch_size")) return;
  for (const char* key : {"tokens_per_tile", "output_tokens_per_tile"})
    if (!reader.has(key)) reader.problem(key, "missing: give it, or image_size and patch_size");
}

// "linear", "mlp2" or a list of sizes that ends at the LLM's width.
void read_projector(TableReader& reader, Encoder& e, double shuffle, std::int64_t llm_width) {
  const Node* written = reader.find("projector");
  const std::int64_t input =
      std::llround(static_cast<double>(e.blocks.hidden_size) / (shuffle * shuffle));
  std::vector<std::int64_t>& sizes = e.projector_sizes;
  if (written && written->is<Node::Array>()) {
    if (!reader.read("projector", sizes)) return;
  } else {
    Projector kind{};
    if (!reader.require("projector", kind)) return;
    sizes = {input, llm_width};
    if (kind == Projector::mlp2) sizes.push_back(llm_width);
  }
  if (input == 0 || llm_width == 0) return;  // reported already
  if (sizes.size() == 1)
    reader.problem("projector", "expected at least two sizes, from and to, or none");
  else if (sizes.empty() && input != llm_width)
    reader.problem("projector", fmt::format("without one the encoder's width {} must be the llm's "
                                            "hidden_size {}",
                                            input, llm_width));
  else if (!sizes.empty() && sizes.back() != llm_width)
    reader.problem("projector", fmt::format("expected to end at the llm's hidden_size {}, found {}",
                                            llm_width, sizes.back()));
}

Encoder read_encoder(const Node& table, const std::string& key, std::int64_t llm_width,
                     Problems& problems) {
  TableReader reader(table, key, problems);
  Encoder e;
  e.name = "encoder";
  double shuffle = 1;
  reader.read("name", e.name);
  read_blocks(reader, e.blocks);
  reader.read("pixel_shuffle", shuffle, {1e-3, 1});
  read_tokens(reader, e, shuffle);
  read_projector(reader, e, shuffle, llm_width);
  reader.read("trained", e.trained);
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
