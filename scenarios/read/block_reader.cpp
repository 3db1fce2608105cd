#include "scenarios/read/block_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mllmsim::scenarios {
namespace {

constexpr Range kLayers{1, 10'000};
constexpr Range kWidth{1, 1e5};

bool contains(const std::vector<std::int64_t>& list, std::int64_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

void read_heads(TableReader& reader, Transformer& t) {
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
}

void read_latent(TableReader& reader, Transformer& t) {
  LatentAttention& l = t.latent;
  reader.read("kv_lora_rank", l.kv_lora_rank, kWidth);
  reader.read("q_lora_rank", l.q_lora_rank, kWidth);
  const bool nope = reader.read("qk_nope_head_dim", l.qk_nope_head_dim, kWidth);
  const bool rope = reader.read("qk_rope_head_dim", l.qk_rope_head_dim, kWidth);
  const bool value = reader.read("v_head_dim", l.v_head_dim, kWidth);
  if (!reader.has("kv_lora_rank")) {
    for (const char* key : {"q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
      if (reader.has(key)) return reader.problem(key, "latent attention needs kv_lora_rank too");
    return;
  }
  if (!nope || !rope || !value)
    return reader.problem("kv_lora_rank",
                          "latent attention needs qk_nope_head_dim, "
                          "qk_rope_head_dim and v_head_dim too");
  t.head_dim = l.qk_nope_head_dim + l.qk_rope_head_dim;
  t.num_key_value_heads = t.num_attention_heads;
}

void read_experts(TableReader& reader, Transformer& t) {
  Experts& x = t.experts;
  constexpr std::array kOthers{
      "num_experts_per_tok",   "moe_intermediate_size", "shared_expert_intermediate_size",
      "first_k_dense_replace", "decoder_sparse_step",   "mlp_only_layers"};
  if (!reader.has("num_experts")) {
    for (const char* key : kOthers)
      if (reader.has(key)) reader.problem(key, "needs num_experts");
    return;
  }
  reader.read("num_experts", x.num_experts, {1, 1e4});
  reader.require("num_experts_per_tok", x.num_experts_per_tok, Range{1, 1e4});
  reader.require("moe_intermediate_size", x.moe_intermediate_size);
  reader.read("shared_expert_intermediate_size", x.shared_expert_intermediate_size);
  if (x.num_experts_per_tok > x.num_experts)
    reader.problem("num_experts_per_tok", fmt::format("expected at most num_experts {}, found {}",
                                                      x.num_experts, x.num_experts_per_tok));
}

void read_adapters(TableReader& reader, Transformer& t, Problems& problems) {
  const Node* written = reader.find("lora");
  if (!written) return;
  TableReader lora(*written, reader.full_key("lora"), problems);
  Adapters& a = t.adapters;
  lora.require("rank", a.lora_rank, Range{1, 1e4});
  lora.read("dora", a.use_dora);
  const bool experts = t.experts.num_experts > 0;
  if (experts) a.up = a.down = false;
  const Node* targets = lora.find("targets");
  if (targets) {
    a.qkv = a.output = a.up = a.down = false;
    const auto* list = std::get_if<Node::Array>(&targets->value);
    for (const Node& name : list ? *list : Node::Array{}) {
      const std::string text = name.is<std::string>() ? name.as<std::string>() : "";
      bool* target = text == "qkv"      ? &a.qkv
                     : text == "output" ? &a.output
                     : text == "up"     ? &a.up
                     : text == "down"   ? &a.down
                                        : nullptr;
      if (!target)
        lora.problem("targets", fmt::format("expected \"qkv\", \"output\", \"up\" or "
                                            "\"down\", found {}",
                                            describe(name)));
      else
        *target = true;
    }
    if (!list || list->empty())
      lora.problem("targets", fmt::format("expected a list of targets, found {}",
                                          list ? "none" : describe(*targets)));
  }
  if (experts && a.use_dora && (a.up || a.down))
    lora.problem(
        "targets",
        "DoRA on experts is not modelled; on \"qkv\" and \"output\" it is, and LoRA on all");
  if (t.latent && a.qkv)
    lora.problem("targets",
                 "adapters on the matrices of latent attention are not modelled; "
                 "\"output\", \"up\" and \"down\" are");
}

void read_recurrence(TableReader& reader, Transformer& t, Problems& problems) {
  const Node* written = reader.find("recurrence");
  if (!written) return;
  if (!t.causal) reader.problem("recurrence", "is of an llm; an encoder has attention");
  TableReader table(*written, reader.full_key("recurrence"), problems);
  Recurrence& r = t.recurrence;
  table.require("rule", r.rule);
  table.require("num_value_heads", r.num_value_heads, kWidth);
  r.num_key_heads = r.num_value_heads;
  table.read("num_key_heads", r.num_key_heads, kWidth);
  table.require("key_head_dim", r.key_head_dim, kWidth);
  table.require("value_head_dim", r.value_head_dim, kWidth);
  table.read("conv_kernel", r.conv_kernel, {1, 1000});
  if (!table.has("chunk_size")) r.chunk_size = r.delta() ? 64 : 128;
  table.read("chunk_size", r.chunk_size, {16, 1024});
  if (r.num_key_heads > 0 && r.num_value_heads % r.num_key_heads != 0)
    table.problem("num_key_heads", fmt::format("expected a divisor of num_value_heads {}, found {}",
                                               r.num_value_heads, r.num_key_heads));
}

// A letter for each layer of a hybrid model, as Megatron-Core and Nemotron-H have it.
std::string read_pattern(TableReader& reader, const Transformer& t) {
  std::string pattern;
  if (!reader.read("hybrid_override_pattern", pattern)) return pattern;
  const auto refuse = [&](std::string why) {
    reader.problem("hybrid_override_pattern", std::move(why));
    pattern.clear();
  };
  if (pattern.find_first_not_of("M*-E") != std::string::npos)
    refuse("expected a letter for each layer: M (recurrence), * (attention), - (MLP), E (experts)");
  else if (static_cast<std::int64_t>(pattern.size()) != t.num_hidden_layers)
    refuse(fmt::format("expected a letter for each of {} layers, found {}", t.num_hidden_layers,
                       pattern.size()));
  else if (pattern.find('M') != std::string::npos && !t.recurrence)
    refuse("M needs recurrence");
  else if (pattern.find('E') != std::string::npos && !reader.has("num_experts"))
    refuse("E needs num_experts");
  else if (t.parallel_residual || t.latent)
    refuse("is not modelled with parallel_residual or latent attention");
  return pattern;
}

// What of it differs between blocks.
struct Traits {
  bool full = false, dense = false, next = false, cross = false, gated = false;
  bool recurrent = false, mixer = true, mlp = true;

  auto operator<=>(const Traits&) const = default;
};

// Which blocks differ from each other, and how.
struct LayerRules {
  std::vector<std::int64_t> full_attention, mlp_only, cross_attention, gated;
  std::string pattern;
  std::int64_t first_dense = 0, sparse_step = 1;

  bool full(std::int64_t i) const { return contains(full_attention, i); }
  bool is(std::int64_t i, char letter) const {
    return static_cast<std::size_t>(i) < pattern.size() &&
           pattern[static_cast<std::size_t>(i)] == letter;
  }
  bool dense(std::int64_t i) const {
    return i < first_dense || contains(mlp_only, i) || (i + 1) % sparse_step != 0;
  }
};

LayerRules read_rules(TableReader& reader, const Transformer& t) {
  LayerRules rules;
  const Range layer{0, kLayers.max};
  const bool windows = t.sliding_window > 0 || t.attention_chunk_size > 0;
  reader.read("full_attention_layers", rules.full_attention, layer);
  if (!windows && !t.recurrence && reader.has("full_attention_layers"))
    reader.problem("full_attention_layers",
                   "needs sliding_window, attention_chunk_size or recurrence");
  rules.pattern = read_pattern(reader, t);
  reader.read("cross_attention_layers", rules.cross_attention, layer);
  if (!t.causal && reader.has("cross_attention_layers"))
    reader.problem("cross_attention_layers", "is of an llm; an encoder has a resampler");
  reader.read("gated_layers", rules.gated, layer);
  reader.read("mlp_only_layers", rules.mlp_only, layer);
  reader.read("first_k_dense_replace", rules.first_dense, layer);
  reader.read("decoder_sparse_step", rules.sparse_step, kLayers);
  return rules;
}

Traits traits_of(const Transformer& all, const LayerRules& rules, std::int64_t i) {
  Traits traits;
  traits.next = i >= all.num_hidden_layers;
  if (traits.next) return traits;
  const bool windows = all.sliding_window > 0 || all.attention_chunk_size > 0;
  traits.full = windows && rules.full(i);
  traits.cross = contains(rules.cross_attention, i);
  traits.gated = traits.cross || contains(rules.gated, i);
  if (rules.pattern.empty()) {
    traits.dense = all.experts.num_experts > 0 && rules.dense(i);
    traits.recurrent = all.recurrence && !rules.full(i);
    return traits;
  }
  traits.recurrent = rules.is(i, 'M');
  traits.mixer = traits.recurrent || rules.is(i, '*');
  traits.mlp = !traits.mixer;
  traits.dense = !rules.is(i, 'E');
  return traits;
}

Transformer kind_of(const Transformer& all, const Traits& traits) {
  Transformer kind = all;
  if (traits.full) kind.sliding_window = kind.attention_chunk_size = 0;
  if (traits.dense) kind.experts = {};
  kind.joins_next_token = traits.next;
  kind.gated_branches = traits.gated;
  if (traits.cross) {
    kind.cross_attention = kind.qk_norm_per_head = true;
    kind.qk_norm = false;
    kind.sliding_window = kind.attention_chunk_size = 0;
  }
  if (traits.recurrent)
    kind.latent = {};
  else
    kind.recurrence = {};
  kind.has_mixer = traits.mixer;
  kind.has_mlp = traits.mlp;
  if (!traits.mlp) {
    kind.intermediate_size = 0;
    kind.adapters.up = kind.adapters.down = false;
  }
  if (!traits.mixer) kind.adapters.qkv = kind.adapters.output = false;
  return kind;
}

}  // namespace

bool read_blocks(TableReader& reader, Transformer& t, OtherBlocks& others, std::int64_t more_layers,
                 Problems& problems) {
  reader.require("num_hidden_layers", t.num_hidden_layers, kLayers);
  reader.require("hidden_size", t.hidden_size, kWidth);
  read_recurrence(reader, t, problems);
  std::string letters = "*-";  // without a pattern, every block has both
  reader.read("hybrid_override_pattern", letters);
  if (letters.find('*') != std::string::npos || !t.recurrence) {
    reader.require("num_attention_heads", t.num_attention_heads, kWidth);
    read_heads(reader, t);
  } else {
    t.num_attention_heads = t.num_key_value_heads = t.recurrence.num_value_heads;
    t.head_dim = t.recurrence.value_head_dim;
  }
  if (!reader.read("intermediate_size", t.intermediate_size) &&
      letters.find('-') != std::string::npos && !reader.has("intermediate_size"))
    reader.problem("intermediate_size", "missing");
  reader.read("attention_gate", t.attention_gate);
  reader.read("gated_mlp", t.gated_mlp);
  reader.read("norm", t.norm);
  reader.read("qk_norm", t.qk_norm);
  reader.read("qk_norm_per_head", t.qk_norm_per_head);
  if (t.qk_norm && t.qk_norm_per_head)
    reader.problem("qk_norm_per_head", "give either this or qk_norm");
  reader.read("post_norms", t.post_norms);
  reader.read("qkv_bias", t.qkv_bias);
  reader.read("packed_qkv", t.packed_qkv);
  reader.read("linear_bias", t.linear_bias);
  reader.read("layer_scale", t.layer_scale);
  reader.read("drop_path", t.drop_path);
  reader.read("rotary", t.rotary);
  reader.read("parallel_residual", t.parallel_residual);
  reader.read("shared_norm", t.shared_norm);
  if (t.shared_norm && !t.parallel_residual)
    reader.problem("shared_norm", "needs parallel_residual");
  if (t.post_norms && t.parallel_residual)
    reader.problem("parallel_residual", "is not modelled with post_norms");
  reader.read("uneven_heads", t.uneven_heads);
  reader.read("sliding_window", t.sliding_window, {1, 1e9});
  reader.read("attention_chunk_size", t.attention_chunk_size, {1, 1e9});
  if (t.sliding_window > 0 && !t.causal)
    reader.problem("sliding_window", "an encoder's windows are attention_chunk_size tokens");
  read_latent(reader, t);
  read_experts(reader, t);
  read_adapters(reader, t, problems);
  const LayerRules rules = read_rules(reader, t);

  const Transformer all = t;
  if (t.parallel_residual && t.experts.num_experts > 0)
    reader.problem("parallel_residual", "is not modelled with experts");
  if (t.latent && !rules.cross_attention.empty())
    reader.problem("cross_attention_layers", "are not modelled with latent attention");
  if (t.recurrence && (t.parallel_residual || !rules.cross_attention.empty()))
    reader.problem("recurrence", "is not modelled with parallel_residual or cross-attention");
  std::vector<Traits> seen;
  for (std::int64_t i = 0; i < all.num_hidden_layers + more_layers; ++i) {
    const Traits traits = traits_of(all, rules, i);
    const auto known = std::find(seen.begin(), seen.end(), traits);
    others.kind_of_layer.push_back(static_cast<std::uint8_t>(known - seen.begin()));
    if (known != seen.end()) continue;
    if (seen.empty())
      t = kind_of(all, traits);
    else
      others.kinds.push_back(kind_of(all, traits));
    seen.push_back(traits);
  }
  if (others.kinds.empty()) others.kind_of_layer.clear();
  t.num_hidden_layers += more_layers;
  for (Transformer& kind : others.kinds) kind.num_hidden_layers = t.num_hidden_layers;
  return t.adapters.lora_rank == 0;
}

}  // namespace mllmsim::scenarios
