// A multimodal model as a list of layers:
// encoders (each with its projector) in front, then the LLM.
//
//   encoder e:  embedding, num_hidden_layers x block, projector    for each encoder, in order
//   llm:        embedding, num_hidden_layers x block, head
//
// The head is the final norm and the vocabulary GEMM. Blocks of a module may be of several kinds:
// windowed and full attention, MLP and experts.
//
// Member names of shapes are Hugging Face's config.json keys. Parameter counts follow from the
// shapes; nothing else about a model is stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/world/image_rule.hpp"

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

// Experts instead of an MLP: a router sends every token to num_experts_per_tok of num_experts; all
// tokens pass the shared ones too.
struct Experts {
  std::int64_t num_experts = 0;  // 0: an MLP
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;            // of one expert
  std::int64_t shared_expert_intermediate_size = 0;  // of all shared ones together

  bool operator==(const Experts&) const = default;
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and
// values are made from narrow latents; a key has a part without and a part with a position, of
// which the latter is the same for all heads.
struct LatentAttention {
  std::int64_t kv_lora_rank = 0;  // 0: ordinary attention
  std::int64_t q_lora_rank = 0;   // 0: queries come straight from the input
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;

  explicit operator bool() const { return kv_lora_rank > 0; }

  bool operator==(const LatentAttention&) const = default;
};

// A recurrence in attention's place. Each value head has a state of key_head_dim x value_head_dim
// that keys and values are written to and queries read from, run over a sequence in chunks:
//   gated_delta  the gated delta rule (Yang et al., arXiv 2412.06464) as Qwen3-Next has it
//   mamba2       state-space duality (Dao and Gu, arXiv 2405.21060): keys are its B, queries its C,
//                key heads its groups, a state's keys its state size
// One matrix makes queries, keys, values, a gate as wide as the values, and one or two numbers for
// each value head; queries, keys and values go through a convolution over a few tokens. What comes
// out is normalised, gated and multiplied by the output's matrix.
enum class RecurrenceRule : std::uint8_t { gated_delta, mamba2 };
template <>
struct Names<RecurrenceRule> {
  static constexpr std::array<std::string_view, 2> list{"gated_delta", "mamba2"};
};

struct Recurrence {
  RecurrenceRule rule = RecurrenceRule::gated_delta;
  std::int64_t num_value_heads = 0;  // 0: attention
  std::int64_t num_key_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t conv_kernel = 4;
  std::int64_t chunk_size = 64;

  explicit operator bool() const { return num_value_heads > 0; }
  bool delta() const { return rule == RecurrenceRule::gated_delta; }
  std::int64_t keys() const { return num_key_heads * key_head_dim; }
  std::int64_t values() const { return num_value_heads * value_head_dim; }
  std::int64_t convolved() const { return 2 * keys() + values(); }
  std::int64_t projected() const {
    return convolved() + values() + (delta() ? 2 : 1) * num_value_heads;
  }

  bool operator==(const Recurrence&) const = default;
};

// Low-rank adapters beside frozen matrices (LoRA; DoRA also normalises the sum). One adapter for
// each matrix that is multiplied at once: qkv is one, gate and up are one.
struct Adapters {
  std::int64_t lora_rank = 0;  // 0: none
  bool use_dora = false;
  bool qkv = true, output = true, up = true, down = true;

  bool operator==(const Adapters&) const = default;
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
  bool packed_qkv = false;   // q, k and v are one matrix in the model's own code
  bool linear_bias = true;   // of the attention output and MLP matrices
  bool layer_scale = false;  // a learned factor per channel on each residual branch (InternViT)
  bool drop_path = false;    // stochastic depth on each residual branch (InternViT)
  bool rotary = false;       // rotary positions; otherwise learned ones in the embedding
  bool causal = false;
  UnevenHeads uneven_heads = UnevenHeads::refuse;
  bool qk_norm_per_head =
      false;                // one norm of head_dim for all heads (Qwen3), not over all of them
  bool post_norms = false;  // a norm at the end of each branch as well (Gemma)
  // Attention and MLP start from the same stream and are added to it together (GPT-NeoX); with one
  // norm for both (Falcon, Cohere) or one each.
  bool parallel_residual = false, shared_norm = false;
  // Blocks of hybrid models that are attention (or a recurrence) alone, with neither
  // intermediate_size nor experts, or an MLP (or experts) alone.
  bool has_mixer = true, has_mlp = true;
  // What attention gives is multiplied by a sigmoid of its own projection, as wide as the queries.
  bool attention_gate = false;
  // Queries of the stream, keys and values of image tokens instead (mllama): neither causal nor
  // rotary.
  bool cross_attention = false;
  bool gated_branches = false;  // a learned factor on each branch, the same for all channels
  // Keys a query sees at most, itself and those before it; 0: all.
  std::int64_t sliding_window = 0;
  // Attention stays within pieces of a sequence of this length (windows of a ViT); 0: the whole.
  std::int64_t attention_chunk_size = 0;
  // Multi-token prediction: the block's input is the stream and the next token's embedding,
  // both normalised, through a matrix of 2 h x h.
  bool joins_next_token = false;
  Experts experts{};
  LatentAttention latent{};
  Recurrence recurrence{};
  Adapters adapters{};

  std::int64_t norms() const {
    if (!has_mixer || !has_mlp) return post_norms ? 2 : 1;
    return post_norms ? 4 : shared_norm ? 1 : 2;
  }
  bool replicates_attention(std::int64_t tp) const {
    return uneven_heads == UnevenHeads::replicate && num_attention_heads % tp != 0;
  }

  bool operator==(const Transformer&) const = default;
};

// Blocks of a module that differ from its first kind.
struct OtherBlocks {
  std::vector<Transformer> kinds;
  std::vector<std::uint8_t> kind_of_layer;  // 0: the first kind, n: kinds[n - 1]; empty: all first

  std::size_t kind(std::uint32_t layer) const {
    return layer < kind_of_layer.size() ? kind_of_layer[layer] : 0;
  }

  bool operator==(const OtherBlocks&) const = default;
};

// Learned queries, `latents` of them for each tile, that see its tokens by cross-attention
// (perceiver, resampler). Its keys may include the queries themselves.
struct Resampler {
  std::int64_t latents = 0;  // 0: none
  bool sees_latents = false;
  Transformer blocks;

  explicit operator bool() const { return latents > 0; }

  bool operator==(const Resampler&) const = default;
};

struct Encoder {
  std::string name;
  Transformer blocks;
  OtherBlocks other_blocks{};
  std::int64_t tokens_per_tile = 0;         // patches + class token; one tile is one sequence
  std::int64_t output_tokens_per_tile = 0;  // LLM tokens after pixel shuffle or pooling
  // Tokens that are merged into one LLM token by an encoder that takes images of any size, each one
  // sequence; 0: all tiles are alike.
  std::int64_t tokens_per_output_token = 0;
  std::int64_t patch_values = 0;  // inputs per patch: 3 * patch * patch; 0: the embedding is free
  ImageRule image{};              // how a picture becomes tiles
  // Learned positions; 0: tokens_per_tile of them, none with rotary ones.
  std::int64_t position_embeddings = 0;
  // Projector: norm, then GEMMs projector_sizes[0] -> [1] -> ... on the output tokens; empty: none.
  std::vector<std::int64_t> projector_sizes;
  bool projector_norm = true, projector_bias = true;
  bool projector_gated = false;  // its last two GEMMs are a SwiGLU, with a third beside the first
  Resampler resampler{};         // behind the projector, as wide as the LLM
  // DeepStack: as many more projectors, of features of earlier blocks; their tokens are added to
  // the stream after the first LLM blocks, one each.
  std::int64_t deepstack_features = 0;
  bool trained = true;
  bool projector_trained = true;

  bool operator==(const Encoder&) const = default;
};

struct Llm {
  std::string name;
  Transformer blocks;
  OtherBlocks other_blocks{};
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;  // learned positions only
  bool tie_word_embeddings = false;
  // Multi-token prediction: the last so many blocks, each of which has the head predict once more.
  std::int64_t num_nextn_predict_layers = 0;
  bool trained = true;

  bool operator==(const Llm&) const = default;
};

struct Model {
  std::string name;
  std::vector<Encoder> encoders;
  Llm llm;

  bool operator==(const Model&) const = default;
};

enum class LayerKind : std::uint8_t { embedding, block, projector, head };

// One step of the pipeline. module: index of the encoder, or encoders.size() for the LLM.
struct Layer {
  LayerKind kind = LayerKind::block;
  std::uint16_t module = 0;
  std::uint32_t index = 0;  // among the layers of its kind in its module

  auto operator<=>(const Layer&) const = default;
};

// Whether a GEMM of the projector, from 0, is two: of a gate, and of what is gated.
bool gates(const Encoder& encoder, std::size_t gemm);

bool is_llm(const Model& model, const Layer& layer);
// What the layer is like; of a module's other layers, its first kind of block.
const Transformer& blocks_of(const Model& model, const Layer& layer);
// Which kind of block it is in its module; layers of one kind cost the same.
std::size_t block_kind(const Model& model, const Layer& layer);
// Every kind of block of a module, the first one first.
std::vector<const Transformer*> block_kinds(const Transformer& first, const OtherBlocks& others);

// Whether the LLM sees images by cross-attention only: they are no part of its sequences.
bool crosses(const Model& model);
// What a sequence that goes with so many encoder tokens in so many tiles has as keys then.
std::int64_t image_tokens_of(const Encoder& encoder, std::int64_t tiles, std::int64_t tokens);

// All layers in the order data passes through them.
std::vector<Layer> layers_of(const Model& model);

std::int64_t parameters(const Model& model, const Layer& layer);
std::int64_t parameters(const Model& model);
// What one of tp ranks holds, rounded up.
std::int64_t parameters_per_rank(const Model& model, const Layer& layer, std::int64_t tp);

// Of a block's routed experts, all of them; part of parameters().
std::int64_t expert_parameters(const Model& model, const Layer& layer);

// Values of its matrices that one token is multiplied with: of experts, those it is sent to.
std::int64_t matrix_values(const Model& model, const Layer& layer);
// Of cross-attention, those that an image token is multiplied with: keys and values.
std::int64_t cross_values(const Transformer& shape);
// Of a resampler: those of all its blocks that one latent is multiplied with.
std::int64_t latent_values(const Resampler& resampler);

// Whether the layer's own weights are; adapters beside frozen ones are not counted.
bool trained(const Model& model, const Layer& layer);
bool has_adapters(const Model& model, const Layer& layer);
// Of one of tp ranks: all, or the adapters, or none.
std::int64_t trained_parameters_per_rank(const Model& model, const Layer& layer, std::int64_t tp);
// Whether image tokens need gradients: something that makes them is trained.
bool images_learn(const Model& model);
// Whether a gradient has to flow out of the layer's input:
// something before it in its chain is trained.
bool needs_input_gradient(const Model& model, const Layer& layer);
// The same for the stream alone, without image tokens that go beside it to cross-attention.
bool stream_needs_gradient(const Model& model, const Layer& layer);

// For tables: "internvit-6b-448.block", "internlm2-20b.head".
std::string layer_name(const Model& model, const Layer& layer);

}  // namespace mllmsim
