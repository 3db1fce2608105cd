// Blocks whose products are below 16 bits: which are, what is quantised, what travels and what is
// kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/layers/activation_memory.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

Software in_format(NumberFormat format) {
  Software s;
  s.cuda_graphs = true;
  s.precision.format = format;
  return s;
}

struct PrecisionFixture {
  Model model = gpt(2, 1024, 8);
  SimpleCosts kernels;
  LayerCosts costs;

  PrecisionFixture(const Software& software, const Parallelism& p = {})
      : costs(model, p, software, kernels, {}) {}
  LayerCost block() { return costs.cost(kLlmBlock, text(2048, 1), Recompute::none); }
};

std::int64_t kernels_named(const std::vector<TimedKernel>& kernels, std::string_view name) {
  return std::count_if(kernels.begin(), kernels.end(),
                       [&](const TimedKernel& k) { return k.name == name; });
}

// Of one layer: 4 products forward, 8 backward in fp8; head and embedding stay in bf16.
TEST(Precision, ProductsOfBlocksAreQuantisedAndOthersAreNot) {
  PrecisionFixture f(in_format(NumberFormat::fp8));
  f.block();
  EXPECT_EQ(f.kernels.gemms.size(), 12U);
  for (const Gemm& g : f.kernels.gemms) EXPECT_EQ(g.format, NumberFormat::fp8);
  f.kernels.gemms.clear();
  f.costs.cost({LayerKind::head, 0, 0}, text(2048, 1), Recompute::none);
  EXPECT_EQ(f.kernels.gemms.size(), 3U);
  for (const Gemm& g : f.kernels.gemms) EXPECT_EQ(g.format, NumberFormat::bf16);
}

// Norms quantise what they write with delayed scaling. With current scaling every input has a
// kernel of its own, which reads it twice unless the norm before found its largest value.
TEST(Precision, InputsAndGradientsAreQuantisedOnce) {
  const LayerCost delayed = PrecisionFixture(in_format(NumberFormat::fp8)).block();
  EXPECT_EQ(kernels_named(delayed.forward, "quantise input"), 2);  // attention output, mlp down
  EXPECT_EQ(kernels_named(delayed.backward, "quantise gradient"), 4);
  Software current = in_format(NumberFormat::fp8);
  current.precision.fp8_current_scaling = true;
  const LayerCost tensorwise = PrecisionFixture(current).block();
  EXPECT_EQ(kernels_named(tensorwise.forward, "quantise input"), 4);
  const auto times = [](const LayerCost& cost) {
    std::vector<Time> out;
    for (const TimedKernel& k : cost.forward)
      if (k.name == "quantise input") out.push_back(k.time);
    return out;
  };
  // 2,048 x 1,024 values (4,096 into mlp down) at 1 ns per kB: read 2 bytes and write two copies of
  // 1, or read 4.
  EXPECT_EQ(times(delayed), (std::vector{Time{8389}, Time{33554}}));
  EXPECT_EQ(times(tensorwise), (std::vector{Time{8389}, Time{12583}, Time{8389}, Time{50332}}));
}

TEST(Precision, Bf16QuantisesNothing) {
  for (const NumberFormat format : {NumberFormat::bf16, NumberFormat::fp16}) {
    PrecisionFixture f(in_format(format));
    const LayerCost cost = f.block();
    EXPECT_EQ(kernels_named(cost.forward, "quantise input"), 0);
    EXPECT_EQ(f.costs.quantise_weights(1000), Time{});
  }
}

// 1,000 million weights in bf16, two copies in fp8: 4 bytes each at 1 ns per kB. Gathered in fp8,
// only the copy by columns is made: 2 bytes.
TEST(Precision, WeightsAreQuantisedOncePerStep) {
  Software software = in_format(NumberFormat::fp8);
  EXPECT_EQ(PrecisionFixture(software).costs.quantise_weights(1'000'000'000), Time{4'000'000});
  software.precision.fp8_param_gather = true;
  EXPECT_EQ(PrecisionFixture(software).costs.quantise_weights(1'000'000'000), Time{2'000'000});
}

// Sharded parameters arrive in bf16, so every pass quantises them.
TEST(Precision, ShardedWeightsAreQuantisedByEveryPass) {
  Parallelism sharded;
  sharded.zero_stage = 3;
  PrecisionFixture f(in_format(NumberFormat::fp8), sharded);
  const LayerCost cost = f.block();
  EXPECT_EQ(kernels_named(cost.forward, "quantise weights"), 1);
  EXPECT_EQ(kernels_named(cost.backward, "quantise weights"), 1);
  EXPECT_EQ(f.costs.quantise_weights(1000), Time{});
}

// Sequence parallelism gathers what is multiplied: half the bytes. What is reduced stays bf16.
TEST(Precision, GatheredOperandsTravelQuantised) {
  const auto gathers = [](NumberFormat format) {
    Software software = in_format(format);
    software.overlap_tp_backward = false;
    PrecisionFixture f(software, tensor_parallel(2, true));
    const LayerCost cost = f.block();
    return std::pair{
        std::ranges::find(cost.forward, "tp all-gather", &TimedKernel::name)->time,
        std::ranges::find(cost.forward, "tp reduce-scatter", &TimedKernel::name)->time};
  };
  EXPECT_NEAR(to_seconds(gathers(NumberFormat::bf16).first).value,
              2 * to_seconds(gathers(NumberFormat::fp8).first).value, 2e-9);
  EXPECT_EQ(gathers(NumberFormat::bf16).second, gathers(NumberFormat::fp8).second);
}

// A block keeps the inputs of three products (qkv, mlp up and down) in 1 byte instead of 2, and a
// quantised copy of the attention output: 2048 x (1024 + 1024 + 4096 - 1024) bytes less.
TEST(Precision, InputsAreKeptQuantised) {
  const Bytes bf16 = PrecisionFixture(in_format(NumberFormat::bf16)).block().saved;
  const Bytes fp8 = PrecisionFixture(in_format(NumberFormat::fp8)).block().saved;
  EXPECT_EQ(bf16 - fp8, Bytes{2048 * (1024 + 1024 + 4096 - 1024)});
}

TEST(Precision, AGpuWithoutSuchProductsIsNamed) {
  class Ampere : public SimpleCosts {
    FlopsPerSecond peak(NumberFormat format) const override {
      return {is_quantised(format) ? 0. : 1e15};
    }
  };
  const Model model = gpt(2, 1024, 8);
  const Ampere kernels;
  EXPECT_THROW(LayerCosts(model, {}, in_format(NumberFormat::fp8), kernels, {}), UserError);
}

}  // namespace
}  // namespace mllmsim
