// Selective recompute by module, by hand on blocks of 64 values and 16 tokens.
#include <gtest/gtest.h>

#include "cost_models/layers/layer_costs.hpp"
#include "tests/cost_models/layer_fakes.hpp"

namespace mllmsim {
using namespace costs;
namespace {

constexpr std::int64_t kHidden = 64, kSixteen = 16;

LayerCost cost_with(const Model& model, const Software& software, Recompute recompute) {
  SimpleCosts kernels;
  LayerCosts costs(model, {}, software, kernels, {});
  return costs.cost(kLlmBlock, text(kSixteen, 1), recompute);
}

// Of a block that runs these modules again.
struct Selective {
  LayerCost cost, without;

  Selective(const Model& model, std::initializer_list<RecomputeModule> modules) {
    Software software;
    software.host_time_per_kernel = software.host_time_per_expert_kernel = {};
    without = cost_with(model, software, Recompute::none);
    software.recompute_modules = {};
    for (const RecomputeModule m : modules) software.recompute_modules.add(m);
    cost = cost_with(model, software, Recompute::selective);
  }

  // Bytes per token that are not kept.
  std::int64_t dropped() const { return (without.saved - cost.saved).value / kSixteen; }
  std::vector<std::string_view> again() const {
    std::vector<std::string_view> names;
    for (const TimedKernel& k : cost.recompute) names.push_back(k.name);
    return names;
  }
};
using KernelNames = std::vector<std::string_view>;

// Flash attention's fp32 log-sum-exp of 4 heads; its output is kept for the next matrix.
TEST(RecomputeModules, CoreAttentionRunsAgain) {
  const Selective run(llama_like(), {RecomputeModule::core_attn});
  EXPECT_EQ(run.dropped(), 4 * 4);
  EXPECT_EQ(run.again(), KernelNames{"attention"});
}

TEST(RecomputeModules, OldMegatronLeftFlashAttentionAlone) {
  Software software;
  software.recompute_flash_attention = false;
  EXPECT_TRUE(cost_with(llama_like(), software, Recompute::selective).recompute.empty());
}

// The residual's addition keeps nothing, so the product before it need not be there; dropout's mask
// must, and with it all that comes before.
TEST(FullRecompute, OfPyTorchStopsBeforeTheLastProduct) {
  const auto again = [](bool early_stop, bool dropout) {
    Software software;
    software.host_time_per_kernel = software.host_time_per_expert_kernel = {};
    software.recompute_early_stop = early_stop;
    software.dropout = dropout;
    return cost_with(llama_like(), software, Recompute::full);
  };
  const LayerCost whole = again(false, false), stopped = again(true, false);
  ASSERT_EQ(whole.recompute.size(), whole.forward.size());
  ASSERT_EQ(stopped.recompute.size() + 2, whole.recompute.size());
  EXPECT_EQ(stopped.recompute.back().name, "swiglu");
  EXPECT_EQ(again(true, true).recompute.size(), again(false, true).recompute.size());
}

// Gate and up, their product, and the normalised input, 2 bytes each.
TEST(RecomputeModules, AnMlpRunsAgainWithTheNormThatItsLinearLayerHolds) {
  const Selective run(llama_like(), {RecomputeModule::mlp});
  EXPECT_EQ(run.dropped(), 2 * (3 * 128 + kHidden));
  EXPECT_EQ(run.again(), (KernelNames{"norm", "mlp up", "swiglu", "mlp down"}));
}

TEST(RecomputeModules, AnMlpIsNoneOfExpertsAndANormOfADenseBlockNoModule) {
  EXPECT_EQ(Selective(with_experts(), {RecomputeModule::mlp}).dropped(), 0);
  const Selective norm(llama_like(), {RecomputeModule::layernorm});
  EXPECT_EQ(norm.dropped(), 0);
  EXPECT_TRUE(norm.again().empty());
}

// Its output, h values.
TEST(RecomputeModules, TheNormBeforeExpertsAndThatBeforeLatentsRunAgain) {
  for (const Model& model : {with_experts(), with_latents()}) {
    const Selective run(model, {RecomputeModule::layernorm});
    EXPECT_EQ(run.dropped(), 2 * kHidden);
    EXPECT_EQ(run.again(), KernelNames{"norm"});
  }
}

// Query and key of 4 (16 + 8), value of 4 16 and both normalised latents go; the shared rotary key
// of 8 is kept instead.
TEST(RecomputeModules, UpProjectionsRunAgainFromTheLatents) {
  const Selective run(with_latents(), {RecomputeModule::mla_up_proj});
  EXPECT_EQ(run.dropped(), 2 * (2 * 4 * 24 + 4 * 16 + 24 + 32) - 2 * 8);
  EXPECT_EQ(run.again(),
            (KernelNames{"norm", "query", "norm", "key and value", "rotary", "key parts"}));
}

// Two routed rows per token: 32 inner values behind the activation.
TEST(RecomputeModules, ExpertsActivationRunsAgain) {
  const Selective run(with_experts(), {RecomputeModule::moe_act});
  EXPECT_EQ(run.dropped(), 2 * 2 * 32);
  EXPECT_EQ(run.again(), KernelNames{"swiglu"});
}

TEST(RecomputeModules, SharedExpertsRunAgain) {
  const Selective run(with_experts(), {RecomputeModule::shared_experts});
  EXPECT_EQ(run.dropped(), 2 * (2 * 48 + 48));
  EXPECT_EQ(run.again(), (KernelNames{"shared expert up", "swiglu", "shared expert down"}));
}

// Probabilities in fp32, two routed copies, gate, up and product of two experts and the shared one.
TEST(RecomputeModules, AllOfTheExpertsPartRunsAgain) {
  const Selective run(with_experts(), {RecomputeModule::moe});
  EXPECT_EQ(run.dropped(), 4 * 8 + 2 * (2 * kHidden + 2 * 3 * 32 + 3 * 48));
  EXPECT_EQ(run.again().front(), "router");
  EXPECT_EQ(run.again().back(), "add shared expert");
}

// The MLP's 448 values come back while all is kept, the log-sum-exp's 16 bytes when the MLP's norm
// input, all that its half keeps, is gone: the first is the most.
TEST(RecomputeModules, ModulesBringBackTheirOwnAtTheirTime) {
  const Selective run(llama_like(), {RecomputeModule::mlp, RecomputeModule::core_attn});
  EXPECT_EQ(run.cost.recomputed.value, kSixteen * 2 * 448);
}

}  // namespace
}  // namespace mllmsim
