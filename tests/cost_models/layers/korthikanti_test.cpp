// Korthikanti et al. 2022, Table 4: one layer of a 22B GPT (hidden 6144, 64 heads) on 8 A100 with
// tensor parallelism 8, micro-batch 4, sequence 2048; Megatron-LM of early 2022: unfused attention,
// fused bias-GELU and bias-dropout-add.
#include <gtest/gtest.h>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim {
using namespace costs;
namespace {

struct Times {
  double forward_ms, backward_ms;
};

Times layer_22b(bool sequence_parallel, Recompute recompute) {
  Model model;
  model.llm.blocks = {.num_hidden_layers = 48,
                      .hidden_size = 6144,
                      .num_attention_heads = 64,
                      .num_key_value_heads = 64,
                      .head_dim = 96,
                      .intermediate_size = 4 * 6144};
  model.llm.blocks.causal = true;
  model.llm.vocab_size = 51200;
  Parallelism p;
  p.tensor_model_parallel_size = 8;
  p.sequence_parallel = sequence_parallel;
  Software software;
  software.flash_attention = false;
  software.dropout = true;
  ClusterSpec cluster;
  cluster.nvlink_bandwidth = {300e9};
  cluster.nic_bandwidth = {25e9};
  cluster.gpu_speed_spread = 0;
  const auto kernels =
      read_kernel_costs(MLLMSIM_SOURCE_DIR "/cost_models/calibrations/a100-sxm4-80g.json", cluster);
  LayerCosts costs(model, p, software, *kernels, cluster);
  const MicroBatch mb{{}, {{{2048, 4}}}, 4};
  const LayerCost& c = costs.cost({LayerKind::block, 0, 0}, mb, recompute);
  const auto ms = [](Time t) { return to_seconds(t).value * 1e3; };
  return {ms(totals(c.forward).time), ms(totals(c.recompute).time + totals(c.backward).time)};
}

void expect_near(const Times& t, double forward_ms, double backward_ms, double tolerance) {
  EXPECT_NEAR(t.forward_ms, forward_ms, tolerance * forward_ms);
  EXPECT_NEAR(t.backward_ms, backward_ms, tolerance * backward_ms);
}

constexpr double kTolerance = 0.05;

TEST(Korthikanti, LayerWithoutRecompute) {
  expect_near(layer_22b(false, Recompute::none), 7.7, 11.9, kTolerance);
}
TEST(Korthikanti, LayerWithSequenceParallelism) {
  expect_near(layer_22b(true, Recompute::none), 7.2, 11.8, kTolerance);
}
TEST(Korthikanti, LayerWithFullRecompute) {
  expect_near(layer_22b(false, Recompute::full), 7.7, 19.5, kTolerance);
}
TEST(Korthikanti, LayerWithSelectiveRecompute) {
  expect_near(layer_22b(false, Recompute::selective), 7.7, 13.2, kTolerance);
}
TEST(Korthikanti, LayerWithBoth) {
  expect_near(layer_22b(true, Recompute::selective), 7.2, 13.1, kTolerance);
}

}  // namespace
}  // namespace mllmsim
