// Kernel costs for tests of layers: one that is exact and easy to add up,
// one with the magnitudes of an A100.
#pragma once

#include <algorithm>
#include <utility>

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim {
using namespace costs;

// 1 ns per MFLOP, 1 ns per kB moved, 10 ns per kB communicated; remembers GEMM shapes.
class SimpleCosts : public KernelCosts {
 public:
  Cost gemm(const Gemm& g) const override {
    gemms.push_back(g);
    return {{g.flops().value * 1e-15}, Source::measured};
  }
  Cost attention(const Attention& a) const override {
    ++attentions;
    return {{a.flops().value * 1e-15}, Source::measured};
  }
  Cost memory_bound(const MemoryBound& m) const override {
    return {{static_cast<double>(m.bytes.value) * 1e-12}, Source::measured};
  }
  Cost collective(const Collective& c) const override {
    return {{static_cast<double>(c.bytes.value) * collective_seconds_per_byte}, Source::measured};
  }
  Cost point_to_point(const PointToPoint& p) const override {
    return {{static_cast<double>(p.bytes.value) * 1e-11}, Source::measured};
  }
  double gemm_slowdown_beside_collective() const override { return 1.25; }
  FlopsPerSecond peak(NumberFormat) const override { return {1e15}; }

  double collective_seconds_per_byte = 1e-11;
  mutable std::vector<Gemm> gemms;
  mutable int attentions = 0;
};

inline Transformer gpt_blocks(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Transformer t;
  t.num_hidden_layers = layers;
  t.hidden_size = hidden;
  t.num_attention_heads = t.num_key_value_heads = heads;
  t.head_dim = hidden / heads;
  t.intermediate_size = 4 * hidden;
  t.causal = true;
  return t;
}

inline Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                 std::int64_t vocab = 51200) {
  Model model;
  model.name = model.llm.name = "gpt";
  model.llm.blocks = gpt_blocks(layers, hidden, heads);
  model.llm.vocab_size = vocab;
  model.llm.max_position_embeddings = 2048;
  return model;
}

// Three Llama-like blocks: 4 heads of 16, an MLP of 128 values.
inline Model llama_like() {
  Model m = gpt(3, 64, 4, 1000);
  Transformer& t = m.llm.blocks;
  t.norm = Norm::rms_norm;
  t.gated_mlp = t.rotary = true;
  t.qkv_bias = t.linear_bias = false;
  t.intermediate_size = 128;
  return m;
}

// 2 of 8 experts of 32 values, a shared one of 48.
inline Model with_experts() {
  Model m = llama_like();
  m.llm.blocks.experts = {8, 2, 32, 48};
  return m;
}

// Latents of 24 (key and value) and 32 (query), heads of 16 + 8, values of 16.
inline Model with_latents() {
  Model m = llama_like();
  m.llm.blocks.latent = {24, 32, 16, 8, 16};
  m.llm.blocks.head_dim = 24;
  return m;
}

// InternViT-6B-448 and InternLM2-20B (papers: Model shapes).
inline Model internvl() {
  Encoder vit;
  vit.name = "InternViT-6B";
  vit.blocks = gpt_blocks(45, 3200, 25);
  vit.blocks.causal = false;
  vit.blocks.norm = Norm::rms_norm;
  vit.blocks.qk_norm = vit.blocks.layer_scale = vit.blocks.drop_path = true;
  vit.blocks.qkv_bias = false;
  vit.tokens_per_tile = 1025;
  vit.output_tokens_per_tile = 256;
  vit.patch_values = 3 * 14 * 14;
  vit.projector_sizes = {12800, 6144, 6144};
  vit.blocks.uneven_heads = UnevenHeads::pad;

  Model model;
  model.name = "internvl";
  model.encoders = {vit};
  model.llm.name = "InternLM2-20B";
  model.llm.blocks = gpt_blocks(48, 6144, 48);
  model.llm.blocks.num_key_value_heads = 8;
  model.llm.blocks.intermediate_size = 16384;
  model.llm.blocks.gated_mlp = model.llm.blocks.rotary = true;
  model.llm.blocks.norm = Norm::rms_norm;
  model.llm.blocks.qkv_bias = model.llm.blocks.linear_bias = false;
  model.llm.vocab_size = 92553;
  return model;
}

inline MicroBatch text(std::int64_t length, std::int64_t count) {
  MicroBatch mb;
  mb.llm.groups = {{length, count}};
  mb.samples = count;
  return mb;
}

inline MicroBatch images(std::int64_t tiles, std::int64_t tokens) {
  MicroBatch mb = text(tokens, 1);
  mb.encoders = {TokenBatch{{{1025, tiles}}}};
  return mb;
}

inline Parallelism tensor_parallel(int tp, bool sequence_parallel = false) {
  Parallelism p;
  p.tensor_model_parallel_size = tp;
  p.sequence_parallel = sequence_parallel;
  return p;
}

// A model, kernels and their layer costs together.
struct LayerFixture {
  Model model;
  SimpleCosts kernels;
  LayerCosts costs;

  LayerFixture(Model m, int tp, bool sequence_parallel, const Software& software,
               std::int64_t micro_batches = 1)
      : model(std::move(m)),
        costs(model, sizes(tp, sequence_parallel, micro_batches), software, kernels, {}) {}

  static Parallelism sizes(int tp, bool sequence_parallel, std::int64_t micro_batches) {
    Parallelism p = tensor_parallel(tp, sequence_parallel);
    p.global_batch_size = micro_batches * p.micro_batch_size * p.data_parallel_size;
    return p;
  }
};

// Megatron-LM of early 2022: fused kernels, but no flash attention; dropout on.
inline Software megatron_2022() {
  Software s;
  s.flash_attention = false;
  s.dropout = true;
  return s;
}

inline Software flash() { return Software{}; }

inline constexpr Layer kLlmBlock{LayerKind::block, 0, 0};  // of a model without encoders

}  // namespace mllmsim
