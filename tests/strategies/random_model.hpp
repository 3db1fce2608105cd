// Random models for properties: blocks of every kind that scenarios may have.
#pragma once

#include <rapidcheck.h>

#include "tests/strategies/small_job.hpp"

namespace mllmsim {

inline bool random_bool() { return *rc::gen::arbitrary<bool>(); }

// With at least so many layers, and up to five more.
inline Transformer random_blocks(int layers) {
  Transformer t;
  t.num_hidden_layers = layers + *rc::gen::inRange(0, 6);
  t.num_attention_heads = *rc::gen::element(4, 8, 16);
  t.num_key_value_heads = random_bool() ? t.num_attention_heads : 4;
  t.head_dim = *rc::gen::element(32, 64, 128);
  t.hidden_size = t.num_attention_heads * t.head_dim;
  t.intermediate_size = t.hidden_size * *rc::gen::element(2, 4);
  t.gated_mlp = random_bool();
  t.norm = *rc::gen::element(Norm::layer_norm, Norm::rms_norm);
  t.qk_norm = random_bool();
  t.layer_scale = random_bool();
  t.drop_path = random_bool();
  return t;
}

// Every second block is of another kind, after the first so many.
inline void add_kind(Transformer other, const Transformer& first, OtherBlocks& blocks) {
  const auto layers = static_cast<std::size_t>(first.num_hidden_layers);
  blocks.kinds.push_back(std::move(other));
  blocks.kind_of_layer.assign(layers, 0);
  for (std::size_t i = 1; i < layers; i += 2) blocks.kind_of_layer[i] = 1;
}

enum class LlmKind : std::uint8_t {
  plain,
  latent,
  windows,
  crossing,
  norms,
  residual,
  adapters,
  next_token,
  recurrent,
  halves
};

inline Recurrence random_recurrence() {
  Recurrence r;
  r.rule = *rc::gen::element(RecurrenceRule::gated_delta, RecurrenceRule::mamba2);
  r.num_key_heads = *rc::gen::element(16, 32);
  r.num_value_heads = r.num_key_heads * *rc::gen::element(1, 2);
  r.key_head_dim = *rc::gen::element(32, 128);
  r.value_head_dim = *rc::gen::element(32, 64);
  return r;
}

// What Transformer Engine has of these where sequences are cut.
inline LlmKind kind_with_context(CpCommType type) {
  using enum LlmKind;
  return type == CpCommType::p2p ? *rc::gen::element(plain, latent, norms, residual, adapters,
                                                     next_token, recurrent, halves)
                                 : *rc::gen::element(plain, windows, norms, residual, adapters,
                                                     next_token, recurrent, halves);
}

// At most one thing in which today's models differ from each other.
inline void random_kinds(Llm& llm, bool images, const Parallelism& p) {
  using enum LlmKind;
  Transformer& t = llm.blocks;
  const LlmKind drawn = p.context_parallel_size > 1
                            ? kind_with_context(p.cp_comm_type)
                            : *rc::gen::element(plain, latent, windows, crossing, norms, residual,
                                                adapters, next_token, recurrent, halves);
  Transformer other = t;
  switch (drawn) {
    case plain:
      return;
    case latent:
      t.latent = {256, random_bool() ? 128 : 0, 64, 32, 64};
      t.head_dim = t.latent.qk_nope_head_dim + t.latent.qk_rope_head_dim;
      t.num_key_value_heads = t.num_attention_heads;
      return;
    case windows:
      t.sliding_window = 128;
      return add_kind(other, t, llm.other_blocks);
    case crossing:
      if (!images) return;
      other.cross_attention = other.qk_norm_per_head = other.gated_branches = true;
      other.qk_norm = false;
      return add_kind(other, t, llm.other_blocks);
    case norms:
      t.post_norms = t.qk_norm_per_head = true;
      t.qk_norm = false;
      return;
    case residual:
      t.parallel_residual = true;
      t.shared_norm = random_bool();
      return;
    case adapters:
      t.adapters.lora_rank = 16;
      t.adapters.use_dora = random_bool();
      t.adapters.up = t.adapters.down = random_bool();
      llm.trained = false;
      return;
    case recurrent:  // every second block, and gates on the others' attention
      other.attention_gate = random_bool();
      t.recurrence = random_recurrence();
      return add_kind(other, t, llm.other_blocks);
    case halves:  // a recurrence alone, an MLP alone
      t.recurrence = random_recurrence();
      t.has_mlp = false;
      t.intermediate_size = 0;
      other.has_mixer = false;
      return add_kind(other, t, llm.other_blocks);
    case next_token:
      llm.num_nextn_predict_layers = 1;
      ++t.num_hidden_layers;
      other.num_hidden_layers = t.num_hidden_layers;
      other.joins_next_token = true;
      llm.other_blocks.kinds = {other};
      llm.other_blocks.kind_of_layer.assign(static_cast<std::size_t>(t.num_hidden_layers), 0);
      llm.other_blocks.kind_of_layer.back() = 1;
  }
}

inline void random_encoder(Encoder& e, const Llm& llm) {
  e.blocks = random_blocks(1);
  if (random_bool())
    e.projector_sizes = {e.blocks.hidden_size, llm.blocks.hidden_size};
  else
    e.projector_sizes.clear();
  e.trained = random_bool();
  e.projector_trained = random_bool();
  if (*rc::gen::inRange(0, 4) == 0) {
    const Transformer full = e.blocks;
    e.blocks.attention_chunk_size = 64;
    add_kind(full, e.blocks, e.other_blocks);
  }
  if (e.projector_sizes.empty() || random_bool()) return;
  const bool crosses = std::any_of(llm.other_blocks.kinds.begin(), llm.other_blocks.kinds.end(),
                                   [](const Transformer& t) { return t.cross_attention; });
  if (random_bool() && !crosses) {
    e.deepstack_features = 1;
  } else {
    e.resampler.latents = e.output_tokens_per_tile;
    e.resampler.sees_latents = random_bool();
    e.resampler.blocks = random_blocks(1);
    e.resampler.blocks.hidden_size = llm.blocks.hidden_size;
    e.resampler.blocks.qk_norm = e.resampler.blocks.layer_scale = e.resampler.blocks.drop_path =
        false;
    e.resampler.blocks.cross_attention = true;
  }
}

// Every model stage finds a layer of the LLM.
inline Model random_model(const Parallelism& p) {
  Model model = small_job().model;
  model.llm.blocks = random_blocks(p.pipeline_model_parallel_size * p.virtual_pipeline_stages);
  model.llm.blocks.rotary = model.llm.blocks.causal = true;
  model.llm.vocab_size = *rc::gen::element(1000, 32000);
  model.llm.trained = random_bool();
  model.llm.tie_word_embeddings = random_bool();
  const int encoders = *rc::gen::inRange(0, 3);
  random_kinds(model.llm, encoders > 0, p);
  const Encoder like = model.encoders.front();
  model.encoders.clear();
  for (int i = encoders; i > 0; --i) {
    model.encoders.push_back(like);
    model.encoders.back().name = "encoder " + std::to_string(i);
    random_encoder(model.encoders.back(), model.llm);
  }
  return model;
}

// What is odd about it, for people.
inline std::string traits_of(const Model& model) {
  const Transformer& t = model.llm.blocks;
  std::string out;
  const auto add = [&](bool has, const char* what) { out += has ? std::string(" ") + what : ""; };
  add(model.llm.trained, "trained");
  add(model.llm.tie_word_embeddings, "tied");
  add(model.llm.num_nextn_predict_layers > 0, "next-token");
  add(t.experts.num_experts > 0, "experts");
  add(static_cast<bool>(t.latent), "latent");
  add(t.sliding_window > 0, "windows");
  add(crosses(model), "crossing");
  add(t.post_norms, "post-norms");
  add(t.parallel_residual, "parallel");
  add(t.adapters.lora_rank > 0, "adapters");
  add(static_cast<bool>(t.recurrence), "recurrent");
  add(!t.has_mlp, "halves");
  for (const Encoder& e : model.encoders) {
    out += "; encoder";
    add(e.trained, "trained");
    add(!e.projector_sizes.empty(), "projector");
    add(e.projector_trained, "trained");
    add(e.blocks.attention_chunk_size > 0, "windows");
    add(static_cast<bool>(e.resampler), "resampler");
    add(e.deepstack_features > 0, "deepstack");
  }
  return out;
}

}  // namespace mllmsim
