// A block of 8 query and 2 key-value heads of 64 on four cp ranks; sequences of 1,024 tokens, so
// 256 of each on a rank.
#include "cost_models/layers/context_parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

Model grouped_gpt() {
  Model model = gpt(2, 512, 8);
  model.llm.blocks.num_key_value_heads = 2;
  return model;
}

Parallelism context_parallel(int cp, CpCommType type = CpCommType::p2p) {
  Parallelism p;
  p.context_parallel_size = cp;
  p.cp_comm_type = type;
  return p;
}

struct ContextFixture {
  Model model = grouped_gpt();
  SimpleCosts kernels;
  Software software;
  LayerCosts costs;

  explicit ContextFixture(const Parallelism& p) : costs(model, p, without_host(), kernels, {}) {}
  static Software without_host() {
    Software s;
    s.cuda_graphs = true;
    return s;
  }
  const LayerCost& block(std::int64_t length, std::int64_t count) {
    return costs.cost(kLlmBlock, text(length, count), Recompute::none);
  }
};

std::int64_t named(const std::vector<TimedKernel>& kernels, std::string_view name) {
  return std::count_if(kernels.begin(), kernels.end(),
                       [&](const TimedKernel& k) { return k.name == name; });
}

Bytes sent(CpCommType type, bool backward, const Model& model = grouped_gpt()) {
  static const SimpleCosts kernels;
  static const Software software;
  LayerSetting s{kernels, software, {}};
  s.cp_group = {4, 1, 1};
  s.cp_comm_type = type;
  return context_parallel_bytes(Block(model.llm.blocks, s), TokenBatch{{{1024, 1}}}, backward);
}

// Bytes on the wire, by hand. Keys and values of a rank: 2 x 256 tokens x 2 heads x 64 x 2 bytes =
// 131,072; three hops round a ring of four, backwards with their gradients.
TEST(ContextParallel, RingPassesKeysAndValuesOn) {
  EXPECT_EQ(sent(CpCommType::p2p, false), Bytes{3 * 131072});
  EXPECT_EQ(sent(CpCommType::p2p, true), Bytes{3 * 2 * 131072});
}

// Latent attention sends what heads have of keys and values, as wide as those are: 256 tokens x 4
// heads x (24 + 16) x 2 bytes = 81,920.
TEST(ContextParallel, RingPassesKeysAndValuesOfLatentsOn) {
  EXPECT_EQ(sent(CpCommType::p2p, false, with_latents()), Bytes{3 * 81920});
  EXPECT_EQ(sent(CpCommType::p2p, true, with_latents()), Bytes{3 * 2 * 81920});
}

// All ranks' together are 524,288; a rank sends three quarters in a ring, and backwards scatters as
// much again.
TEST(ContextParallel, AllGatherBringsThemAllAtOnce) {
  EXPECT_EQ(sent(CpCommType::all_gather, false), Bytes{3 * 131072});
  EXPECT_EQ(sent(CpCommType::all_gather, true), Bytes{2 * 3 * 131072});
}

// Queries are 256 x 8 x 64 x 2 = 262,144 bytes, keys and values half of that; three quarters of
// them leave, and three quarters of the output, as large as the queries.
TEST(ContextParallel, AllToAllTradesTokensForHeads) {
  EXPECT_EQ(sent(CpCommType::a2a, false), Bytes{3 * (262144 + 131072) / 4 + 3 * 262144 / 4});
  EXPECT_EQ(sent(CpCommType::a2a, true), sent(CpCommType::a2a, false));
}

TEST(ContextParallel, ARingHasAStepForEveryRank) {
  ContextFixture f(context_parallel(4));
  const LayerCost& cost = f.block(1024, 2);
  EXPECT_EQ(named(cost.forward, "attention"), 4);
  EXPECT_EQ(named(cost.backward, "attention backward"), 4);
  EXPECT_EQ(named(cost.forward, "cp exchange (exposed)"), 3);  // memory is faster than messages
}

// Work is conserved: four ranks together do what one does alone.
TEST(ContextParallel, RanksShareFlopsAndActivations) {
  for (const CpCommType type : {CpCommType::p2p, CpCommType::all_gather}) {
    ContextFixture one(context_parallel(1)), four(context_parallel(4, type));
    const LayerCost &whole = one.block(1024, 2), &part = four.block(1024, 2);
    EXPECT_NEAR(totals(part.forward).flops.value * 4, totals(whole.forward).flops.value, 1);
    EXPECT_NEAR(totals(part.backward).flops.value * 4, totals(whole.backward).flops.value, 1);
    // Where keys are gathered, attention's output once more: 2,048 tokens of 512 values in bf16.
    const Bytes twice{type == CpCommType::p2p ? 0 : 2048 * 512 * 2};
    EXPECT_EQ(part.saved * 4, whole.saved + twice);
    EXPECT_EQ(part.model_flops.value, whole.model_flops.value);
  }
}

TEST(ContextParallel, OneRankIsNoneToTheLastBit) {
  ContextFixture plain{Parallelism{}};
  for (const CpCommType type : {CpCommType::p2p, CpCommType::all_gather, CpCommType::a2a}) {
    ContextFixture one(context_parallel(1, type));
    for (const std::int64_t length : {1024, 1023}) {
      const LayerTotals a = totals(plain.block(length, 3)), b = totals(one.block(length, 3));
      EXPECT_EQ(a.forward.time, b.forward.time);
      EXPECT_EQ(a.backward.time, b.backward.time);
      EXPECT_EQ(a.saved, b.saved);
    }
  }
}

// 1,001 tokens are cut into 8 pieces of 126, of which a rank has two: 252 tokens.
TEST(ContextParallel, PiecesArePadded) {
  ContextFixture f(context_parallel(4));
  f.block(1001, 1);
  EXPECT_EQ(f.kernels.gemms.front().m, 252);
}

// Every rank encodes all images, or a fourth of them, and all then gather.
TEST(ContextParallel, EncodersRepeatOrSplit) {
  const auto encoded = [](bool split) {
    Model model = internvl();
    SimpleCosts kernels;
    Software software = ContextFixture::without_host();
    software.split_encoders_over_cp = split;
    LayerCosts costs(model, context_parallel(4), software, kernels, {});
    const LayerCost block = costs.cost({LayerKind::block, 0, 0}, images(8, 4096), Recompute::none);
    const LayerCost projector =
        costs.cost({LayerKind::projector, 0, 0}, images(8, 4096), Recompute::none);
    return std::pair{totals(block.forward).flops.value, named(projector.forward, "cp all-gather")};
  };
  EXPECT_DOUBLE_EQ(encoded(false).first, 4 * encoded(true).first);
  EXPECT_EQ(encoded(false).second, 0);
  EXPECT_EQ(encoded(true).second, 1);
}

}  // namespace
}  // namespace mllmsim
