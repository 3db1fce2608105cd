// A multimodal model as a list of layers:
// encoders (each with its projector) in front, then the LLM.
//
//   encoder e:  embedding, num_hidden_layers x block, projector    for each encoder, in order
//   llm:        embedding, num_hidden_layers x block, head
//
// The head is the final norm and the vocabulary GEMM.
//
// Member names of shapes are Hugging Face's config.json keys. Parameter counts follow from the
// shapes; nothing else about a model is stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/enum_names.hpp"

namespace mllmsim {

enum class Norm : std::uint8_t { layer_norm, rms_norm };
template <>
struct Names<Norm> {
  static constexpr std::array<std::string_view, 2> list{"layer_norm", "rms_norm"};
};

// What tensor parallelism does with heads that do not divide by tp.
enum class UnevenHeads : std::uint8_t {
  refuse,
  pad,        // with empty heads, to the next multiple of tp
  replicate,  // every rank runs the whole attention; only the MLP is split
};
template <>
struct Names<UnevenHeads> {
  static constexpr std::array<std::string_view, 3> list{"refuse", "pad", "replicate"};
};

struct Transformer {
  std::int64_t num_hidden_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;           // of q, k and v
  std::int64_t intermediate_size = 0;  // of the MLP
  bool gated_mlp = false;              // SwiGLU: three matrices instead of two
  Norm norm = Norm::layer_norm;
  bool qk_norm = false;  // norms on q and k
  bool qkv_bias = true;
  bool linear_bias = true;   // of the attention output and MLP matrices
  bool layer_scale = false;  // a learned factor per channel on each residual branch (InternViT)
  bool drop_path = false;    // stochastic depth on each residual branch (InternViT)
  bool rotary = false;       // rotary positions; otherwise learned ones in the embedding
  bool causal = false;
  UnevenHeads uneven_heads = UnevenHeads::refuse;

  bool replicates_attention(std::int64_t tp) const {
    return uneven_heads == UnevenHeads::replicate && num_attention_heads % tp != 0;
  }
};

struct Encoder {
  std::string name;
  Transformer blocks;
  std::int64_t tokens_per_tile = 0;         // patches + class token; one tile is one sequence
  std::int64_t output_tokens_per_tile = 0;  // LLM tokens after pixel shuffle or pooling
  std::int64_t patch_values = 0;  // inputs per patch: 3 * patch * patch; 0: the embedding is free
  // Projector: norm, then GEMMs projector_sizes[0] -> [1] -> ... on the output tokens; empty: none.
  std::vector<std::int64_t> projector_sizes;
  bool trained = true;
  bool projector_trained = true;
};

struct Llm {
  std::string name;
  Transformer blocks;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;  // learned positions only
  bool tie_word_embeddings = false;
  bool trained = true;
};

struct Model {
  std::string name;
  std::vector<Encoder> encoders;
  Llm llm;
};

enum class LayerKind : std::uint8_t { embedding, block, projector, head };

// One step of the pipeline. module: index of the encoder, or encoders.size() for the LLM.
struct Layer {
  LayerKind kind = LayerKind::block;
  std::uint16_t module = 0;
  std::uint32_t index = 0;  // among the layers of its kind in its module

  auto operator<=>(const Layer&) const = default;
};

bool is_llm(const Model& model, const Layer& layer);
const Transformer& blocks_of(const Model& model, const Layer& layer);

// All layers in the order data passes through them.
std::vector<Layer> layers_of(const Model& model);

std::int64_t parameters(const Model& model, const Layer& layer);
std::int64_t parameters(const Model& model);
// What one of tp ranks holds, rounded up.
std::int64_t parameters_per_rank(const Model& model, const Layer& layer, std::int64_t tp);

bool trained(const Model& model, const Layer& layer);
// Whether a gradient has to flow out of the layer's input:
// something before it in its chain is trained.
bool needs_input_gradient(const Model& model, const Layer& layer);

// For tables: "internvit-6b-448.block", "internlm2-20b.head".
std::string layer_name(const Model& model, const Layer& layer);

}  // namespace mllmsim
