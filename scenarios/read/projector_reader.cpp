#include "scenarios/read/projector_reader.hpp"

#include <fmt/format.h>

#include <cmath>

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

// "linear", "mlp2" or a list of sizes that ends at the LLM's width.
void read_sizes(TableReader& reader, Encoder& e, double shuffle, std::int64_t llm_width) {
  const Node* written = reader.find("projector");
  const std::int64_t input =
      e.tokens_per_output_token > 0
          ? e.blocks.hidden_size * e.tokens_per_output_token
          : std::llround(static_cast<double>(e.blocks.hidden_size) / (shuffle * shuffle));
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

// resampler = { latents = 64, num_hidden_layers = 3, num_attention_heads = 16, ... }
void read_resampler(TableReader& encoder, Encoder& e, std::int64_t llm_width, Problems& problems) {
  const Node* written = encoder.find("resampler");
  if (!written) return;
  TableReader reader(*written, encoder.full_key("resampler"), problems);
  Resampler& r = e.resampler;
  Transformer& t = r.blocks;
  reader.require("latents", r.latents, Range{1, 1e5});
  reader.require("num_hidden_layers", t.num_hidden_layers, Range{1, 100});
  reader.require("num_attention_heads", t.num_attention_heads, Range{1, 1e4});
  reader.require("intermediate_size", t.intermediate_size, Range{1, 1e6});
  t.num_key_value_heads = t.num_attention_heads;
  reader.read("num_key_value_heads", t.num_key_value_heads, Range{1, 1e4});
  t.hidden_size = llm_width;
  if (!reader.read("head_dim", t.head_dim, Range{1, 1e4}) && t.num_attention_heads > 0)
    t.head_dim = llm_width / t.num_attention_heads;
  reader.read("gated_mlp", t.gated_mlp);
  reader.read("norm", t.norm);
  reader.read("qkv_bias", t.qkv_bias);
  reader.read("linear_bias", t.linear_bias);
  reader.read("sees_latents", r.sees_latents);
  t.cross_attention = true;
  if (t.num_key_value_heads > 0 && t.num_attention_heads % t.num_key_value_heads != 0)
    reader.problem("num_key_value_heads",
                   fmt::format("expected a divisor of num_attention_heads {}, found {}",
                               t.num_attention_heads, t.num_key_value_heads));
  if (t.num_attention_heads > 0 && t.head_dim == 0)
    reader.problem(
        "num_attention_heads",
        fmt::format("are more than the llm's hidden_size {}; or give head_dim", llm_width));
  if (e.deepstack_features > 0)
    reader.problem("latents", "a resampler and deepstack_features are not modelled together");
  if (e.projector_sizes.empty())
    encoder.problem("projector", "a resampler needs one in front, to the llm's hidden_size");
  e.output_tokens_per_tile = r.latents;
}

}  // namespace

void read_projector(TableReader& encoder, Encoder& e, double shuffle, std::int64_t llm_width,
                    Problems& problems) {
  read_sizes(encoder, e, shuffle, llm_width);
  encoder.read("projector_norm", e.projector_norm);
  encoder.read("projector_bias", e.projector_bias);
  encoder.read("projector_gated", e.projector_gated);
  if (e.projector_gated && e.projector_sizes.size() < 3)
    encoder.problem("projector_gated", "needs a projector of three sizes or more");
  encoder.read("deepstack_features", e.deepstack_features, {1, 100});
  read_resampler(encoder, e, llm_width, problems);
}

}  // namespace mllmsim::scenarios
