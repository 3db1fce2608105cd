// What the CPU's launches make of a block; first one with experts: 16 tokens of 64 values, 2 of 8
// experts for each on 4 ranks, so 2 experts per rank.
#include <gtest/gtest.h>

#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

LayerTotals block(const Software& software, double host_slowdown = 1,
                  double collective_seconds_per_byte = 1e-11, std::int64_t samples = 1) {
  Model model = llama_like();
  model.llm.blocks.experts = {8, 2, 32, 0};
  Parallelism p;
  p.data_parallel_size = 4;
  p.expert_model_parallel_size = 4;
  SimpleCosts kernels;
  kernels.collective_seconds_per_byte = collective_seconds_per_byte;
  ClusterSpec cluster;
  cluster.host_slowdown = host_slowdown;
  return LayerCosts(model, p, software, kernels, cluster)
      .total(kLlmBlock, text(16 / samples, samples), Recompute::none);
}

Software launching(double kernel_s, double expert_kernel_s) {
  Software s = flash();
  s.host_time_per_kernel = {kernel_s};
  s.host_time_per_expert_kernel = {expert_kernel_s};
  s.moe_expert_capacity_factor = 1;
  return s;
}

double seconds(Time t) { return to_seconds(t).value; }
constexpr double kNear = 1e-6;  // kernels themselves, and shares rounded to nanoseconds

// Up and down of two experts; backward two products of each.
TEST(HostTime, EveryExpertsProductIsALaunch) {
  const LayerTotals t = block(launching(0, 1));
  EXPECT_NEAR(seconds(t.forward.time), 4, kNear);
  EXPECT_NEAR(seconds(t.backward.time), 8, kNear);
}

// Of each expert, in MXFP8, one kernel before each product of the forward, and one before both of
// the backward; three where the largest value is looked for first (that, the scale, the values), as
// before the attention's output, where the kernel itself is Python's (before qkv the norm finds
// it). Scales of MXFP8 are laid out for both operands of every product: of qkv, output, up and
// down, twice as many backward.
TEST(HostTime, EveryExpertsRowsAreQuantisedForThemselves) {
  Software s = launching(0, 1);
  s.precision.format = NumberFormat::mxfp8;
  EXPECT_NEAR(seconds(block(s).forward.time), 4 + 4 + 2 * 4, kNear);
  EXPECT_NEAR(seconds(block(s).backward.time), 8 + 4 + 2 * 8, kNear);
  s.precision.format = NumberFormat::fp8;
  s.precision.fp8_current_scaling = true;
  EXPECT_NEAR(seconds(block(s).forward.time), 4 + 12 + 2, kNear);
  s.precision.fp8_current_scaling = false;  // scales are known: one kernel for all experts
  EXPECT_NEAR(seconds(block(s).forward.time), 4, kNear);
}

TEST(HostTime, OneLaunchOfAllExpertsIsOne) {
  Software s = launching(0, 1);
  s.moe_fused_grouped_mlp = true;
  EXPECT_NEAR(seconds(block(s).forward.time), 0, kNear);
}

// A choice of 9 kernels and a loss of 14 become 1 and 5. Nothing else of the block changes.
TEST(HostTime, AFusedRouterIsFewerLaunches) {
  Software s = launching(1, 0);
  const double eager = seconds(block(s).forward.time);
  s.moe_router_fusion = true;
  EXPECT_NEAR(seconds(block(s).forward.time), eager - (9 + 14 - 1 - 5), kNear);
}

TEST(HostTime, ASlowerCpuTakesLonger) {
  EXPECT_NEAR(seconds(block(launching(0, 1), 2.7).forward.time), 4 * 2.7, kNear);
}

// Kernels that are longer than their launches hide all of them but the one that the GPU waits for:
// the first after the CPU knows how many rows each expert has. At a capacity, or in a graph, none.
TEST(HostTime, WithoutACapacityTheCpuWaitsForTheRouter) {
  Software s = launching(1e-3, 0);
  s.moe_expert_capacity_factor = 0;
  const double waited = seconds(block(s, 1, 1e-4).forward.time);
  s.cuda_graphs = true;
  EXPECT_NEAR(waited, seconds(block(s, 1, 1e-4).forward.time) + 1e-3, kNear);
  s.cuda_graphs = false;
  s.moe_expert_capacity_factor = 1;
  const double hidden = seconds(block(s, 1, 1e-4).forward.time);
  s.cuda_graphs = true;
  EXPECT_NEAR(hidden, seconds(block(s, 1, 1e-4).forward.time), kNear);
}

// Instead of one kernel, forward and backward: q and k of each of four samples by 13 kernels, and
// back by 11 with one more for all samples.
TEST(HostTime, SamplesOfAPackMayBeTurnedOneByOne) {
  Software s = launching(1, 0);
  const LayerTotals at_once = block(s, 1, 1e-11, 4);
  s.rotary_per_sample = true;
  const LayerTotals one_by_one = block(s, 1, 1e-11, 4);
  EXPECT_NEAR(seconds(one_by_one.forward.time - at_once.forward.time), 2 * 4 * 13 - 1, kNear);
  EXPECT_NEAR(seconds(one_by_one.backward.time - at_once.backward.time), 2 * (4 * 11 + 1) - 1,
              kNear);
}

// Before q and before k the CPU waits for the GPU, so that nothing hides those launches, nor those
// of attention, output and the sum over ranks, which is long enough to hide the others.
TEST(HostTime, TurningSamplesOneByOneWaitsForTheGpu) {
  const Model model = llama_like();
  SimpleCosts kernels;
  kernels.collective_seconds_per_byte = 1e-4;
  Software s = launching(1e-3, 0);
  const auto forward = [&] {
    return seconds(LayerCosts(model, tensor_parallel(2, false), s, kernels, {})
                       .total(kLlmBlock, text(4, 4), Recompute::none)
                       .forward.time);
  };
  const double hidden = forward();
  s.rotary_per_sample = true;
  EXPECT_NEAR(forward(), hidden + (2 * 4 * 13 + 3) * 1e-3, kNear);
}

// Kernels of some nanoseconds, launched in 10 us each: the pass takes as long as its launches. With
// a CPU that needs no time it takes what the kernels take, each rounded to a nanosecond. Of 16 * 64
// values: two norms of 4 B per value (4 ns each), the bias of q, k and v (3 * 4 B: 12), two sums of
// 6 B (6), GELU (4 * 4 B: 16); GEMMs of 0.4, 0.1, 0.5 and 0.5 MFLOPs (0, 0, 1, 1), attention (0).
TEST(HostTime, SmallLayersWaitForTheirLaunches) {
  Software slow = flash();
  slow.host_time_per_kernel = {10e-6};
  LayerFixture f(gpt(1, 64, 4), 1, false, slow);
  const LayerCost& cost = f.costs.cost(kLlmBlock, text(16, 1), Recompute::none);
  const double launches = 10e3 * static_cast<double>(cost.forward.size());
  EXPECT_NEAR(static_cast<double>(totals(cost.forward).time.value), launches, launches * 0.001);
  slow.host_time_per_kernel = {0};
  LayerFixture g(gpt(1, 64, 4), 1, false, slow);
  const LayerCost& free = g.costs.cost(kLlmBlock, text(16, 1), Recompute::none);
  EXPECT_EQ(totals(free.forward).time, Time{2 * 4 + 12 + 2 * 6 + 16 + 2});
}

// Launches of 10 us that wait for their kernels: 10 us more for each, however long it takes.
TEST(HostTime, LaunchesThatBlockAreAddedToKernels) {
  Software ahead = flash(), blocking = flash();
  ahead.host_time_per_kernel = {};
  blocking.host_time_per_kernel = {10e-6};
  blocking.launch_blocking = true;
  LayerFixture f(gpt(1, 1024, 16), 1, false, ahead), g(gpt(1, 1024, 16), 1, false, blocking);
  const LayerCost& free = f.costs.cost(kLlmBlock, text(4096, 4), Recompute::full);
  const LayerCost& waited = g.costs.cost(kLlmBlock, text(4096, 4), Recompute::full);
  EXPECT_EQ(totals(waited.forward).time - totals(free.forward).time,
            Time{10'000 * totals(free.forward).launches});
  EXPECT_EQ(totals(waited.backward).time - totals(free.backward).time,
            Time{10'000 * totals(free.backward).launches});
  EXPECT_EQ(g.costs.total(kLlmBlock, text(4096, 4), Recompute::full).recompute.time,
            totals(waited.recompute).time);
}

// A block's second forward and its backward are launched one after the other: launches that take as
// long as the kernels of both together cost nothing, though the forward's take longer than its own.
TEST(HostTime, RecomputeAndBackwardAreLaunchedTogether) {
  Software software = flash();
  software.host_time_per_kernel = {};
  LayerFixture f(gpt(1, 1024, 16), 1, false, software);
  const LayerCost& free = f.costs.cost(kLlmBlock, text(4096, 1), Recompute::full);
  const KernelTotals again = totals(free.recompute), back = totals(free.backward);
  const double launches = static_cast<double>(again.launches + back.launches);
  software.host_time_per_kernel = to_seconds(again.time + back.time) / launches;
  LayerFixture g(gpt(1, 1024, 16), 1, false, software);
  const LayerCost& bound = g.costs.cost(kLlmBlock, text(4096, 1), Recompute::full);
  const Time both = totals(bound.recompute).time + totals(bound.backward).time;
  EXPECT_GT(software.host_time_per_kernel * static_cast<double>(again.launches),
            to_seconds(again.time));
  EXPECT_NEAR(to_seconds(both) / to_seconds(again.time + back.time), 1, 1e-3);
}

}  // namespace
}  // namespace mllmsim
