// LayerCosts::total() takes a shorter way than cost(), which lists kernels; both must say the same,
// to the nanosecond, the byte and the FLOP, whatever the layer and whatever was asked before.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cost_models/layers/layer_costs.hpp"
#include "cost_models/layers/layer_memo.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

void expect_same(const KernelTotals& a, const KernelTotals& b) {
  RC_ASSERT(a.time == b.time);
  RC_ASSERT(a.communication == b.communication);
  RC_ASSERT(a.flops.value == b.flops.value);
  RC_ASSERT(a.by_source == b.by_source);
}

void expect_same(const LayerTotals& a, const LayerTotals& b) {
  expect_same(a.forward, b.forward);
  expect_same(a.recompute, b.recompute);
  expect_same(a.backward, b.backward);
  RC_ASSERT(a.model_flops.value == b.model_flops.value);
  RC_ASSERT(a.saved == b.saved);
  RC_ASSERT(a.working == b.working);
  RC_ASSERT(a.recomputed == b.recomputed);
}

bool any() { return *rc::gen::arbitrary<bool>(); }

Transformer any_blocks(UnevenHeads uneven_heads) {
  const int heads = *rc::gen::element(4, 16, 25);
  Transformer t = gpt_blocks(2, 64 * heads, heads);
  t.num_key_value_heads = any() ? heads : 1;
  t.gated_mlp = any();
  t.norm = any() ? Norm::rms_norm : Norm::layer_norm;
  t.qk_norm = any();
  t.qkv_bias = any();
  t.linear_bias = any();
  t.layer_scale = any();
  t.drop_path = any();
  t.rotary = any();
  t.causal = any();
  t.uneven_heads = uneven_heads;
  return t;
}

Model any_model() {
  const UnevenHeads uneven = any() ? UnevenHeads::pad : UnevenHeads::replicate;
  Model model = internvl();
  Encoder& e = model.encoders[0];
  e.blocks = any_blocks(uneven);
  e.tokens_per_tile = *rc::gen::element(1024, 1025);
  e.projector_sizes.front() = 4 * e.blocks.hidden_size;
  e.trained = any();
  e.projector_trained = any();
  model.llm.blocks = any_blocks(uneven);
  e.projector_sizes.back() = model.llm.blocks.hidden_size;
  model.llm.trained = any();
  return model;
}

Parallelism any_parallelism() {
  Parallelism p = tensor_parallel(*rc::gen::element(1, 2, 4, 8), any());
  p.zero_stage = *rc::gen::element(0, 1, 3);
  p.global_batch_size = *rc::gen::element(1, 2);
  return p;
}

Software any_software() {
  Software s;
  s.flash_attention = any();
  s.fused_kernels = any();
  s.fused_norms = any();
  s.gather_qk_norm = any();
  s.dropout = any();
  s.overlap_tp_backward = any();
  s.overlap_tp_all_reduce = any();
  s.overlap_tp_forward = any();
  s.recompute_modules = {};
  for (const RecomputeModule m : {RecomputeModule::core_attn, RecomputeModule::mlp})
    if (any()) s.recompute_modules.add(m);
  s.recompute_flash_attention = any();
  s.recompute_early_stop = any();
  s.rotary_per_sample = any();
  s.host_time_per_kernel = {*rc::gen::element(0.0, 1e-9, 8e-6)};
  s.host_time_per_expert_kernel = {*rc::gen::element(0.0, 1e-9, 12e-6)};
  s.grad_accumulation_bytes_per_parameter = *rc::gen::element(0, 10);
  return s;
}

// Sequences of any lengths; tiles are all alike. Without images there is no group, or one of none.
std::vector<MicroBatch> any_micro_batches(std::int64_t tokens_per_tile) {
  MicroBatch mb;
  for (int i = *rc::gen::element(1, 2, 4); i > 0; --i)
    mb.llm.groups.push_back({8 * *rc::gen::inRange(1, 200), *rc::gen::inRange(1, 4)});
  std::vector<MicroBatch> out(3, mb);
  out[0].encoders = {TokenBatch{}};
  out[1].encoders = {TokenBatch{{{tokens_per_tile, 0}}}};
  out[2].encoders = {TokenBatch{{{tokens_per_tile, *rc::gen::inRange(1, 5)}}}};
  return out;
}

TEST(LayerTotals, AreThoseOfTheListedKernels) {
  EXPECT_TRUE(rc::check([] {
    const Model model = any_model();
    const Parallelism parallelism = any_parallelism();
    const Software software = any_software();
    const SimpleCosts kernels;
    LayerCosts asked(model, parallelism, software, kernels, {});
    LayerCosts listed(model, parallelism, software, kernels, {});
    for (int batches = 3; batches > 0; --batches)
      for (const MicroBatch& mb : any_micro_batches(model.encoders[0].tokens_per_tile))
        for (const Layer& layer : layers_of(model))
          for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full})
            expect_same(asked.total(layer, mb, r), totals(listed.cost(layer, mb, r)));
  }));
}

// Every key has its own totals, remembered or made again after many others.
TEST(LayerTotals, AreRememberedByAllOfTheirKey) {
  KnownTotals known;
  std::int64_t made = 0;
  const auto time_of = [&](std::int64_t tokens, std::int64_t images) {
    const TotalKey key{LayerKind::block, 0, 0, Recompute::none, 1, tokens, images, 0, 0};
    known.expect(KnownTotals::hash_of(key));
    known.fetch(KnownTotals::hash_of(key));
    return known
        .of(key,
            [&] {
              ++made;
              LayerTotals t;
              t.forward.time = Time{1000 * tokens + images};
              return t;
            })
        .forward.time;
  };
  const auto ask_for_all = [&] {
    for (std::int64_t tokens = 0; tokens < 300; ++tokens)
      for (std::int64_t images = 0; images < 100; ++images)
        EXPECT_EQ(time_of(tokens, images), Time{1000 * tokens + images});
  };
  ask_for_all();
  ask_for_all();
  EXPECT_EQ(made, 30'000);
  for (std::int64_t tokens = 1000; tokens < 101'000; ++tokens)
    EXPECT_EQ(time_of(tokens, 0), Time{1000 * tokens});
  EXPECT_EQ(made, 130'000);
  ask_for_all();
}

// Gradients of nothing are not accumulated either, however the batch says that it has no images.
TEST(LayerTotals, AnEncoderWithoutImagesTakesNoTime) {
  const Model model = internvl();
  Parallelism two_micro_batches;
  two_micro_batches.global_batch_size = 2;
  Software software;
  software.host_time_per_kernel = software.host_time_per_expert_kernel = {0};
  software.grad_accumulation_bytes_per_parameter = 10;
  const SimpleCosts kernels;
  LayerCosts costs(model, two_micro_batches, software, kernels, {});
  MicroBatch mb = text(1024, 1);
  mb.encoders = {TokenBatch{}};
  const LayerTotals t = costs.total({LayerKind::block, 0, 0}, mb, Recompute::none);
  EXPECT_EQ(t.forward.time + t.backward.time, Time{});
}

}  // namespace
}  // namespace mllmsim
