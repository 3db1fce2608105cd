// Kernels of a run and their shares, encoders beside the LLM's pipeline included.
#include "results/analysis/gaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace mllmsim::analysis {
namespace {

constexpr const char* kRun = "vit-3b-gpt-11b-a100x8";
constexpr GapsAsked kAll{.all = true};

double share(const Gaps& gaps) {
  double sum = 0;
  for (const Gap& g : gaps.gaps) sum += g.share;
  return sum;
}

bool lists(const Gaps& gaps, const std::string& kernel) {
  return std::any_of(gaps.gaps.begin(), gaps.gaps.end(),
                     [&](const Gap& g) { return g.kernel == kernel; });
}

TEST(Gaps, SharesOfAllKernelsSumToOne) {
  EXPECT_NEAR(share(gaps_of({scenarios::read_scenario(kRun)}, kAll)), 1, 1e-9);
}

// The ViT has 18 heads of 128; with tp 1 of its own, beside an LLM with tp 2, a GPU has them all.
TEST(Gaps, EncodersBesideThePipelineHaveTheirOwnSizes) {
  const scenarios::Scenario optimus =
      scenarios::read_scenario(kRun, {"strategy.encoder_tensor_model_parallel_size=1"});
  EXPECT_TRUE(lists(gaps_of({optimus}, kAll), "attention 1 x 2048 heads 18 of 128"));
}

// Two runs alike have the kernels of one; the largest come first.
TEST(Gaps, SeveralRunsAreAveraged) {
  const scenarios::Scenario run = scenarios::read_scenario(kRun);
  const Gaps one = gaps_of({run}, {.most = 3}), two = gaps_of({run, run}, {.most = 3});
  ASSERT_EQ(one.gaps.size(), 3U);
  ASSERT_EQ(two.gaps.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(two.gaps[i].kernel, one.gaps[i].kernel);
    EXPECT_NEAR(two.gaps[i].share, one.gaps[i].share, 1e-12);
  }
  EXPECT_GE(one.gaps[0].share, one.gaps[2].share);
}

// Both strategies run the same layers with the same sizes, wherever they put them.
TEST(Gaps, OptimusHasTheKernelsAndSharesOfTheBaseline) {
  const auto shares = [](const std::vector<std::string>& overrides) {
    std::map<std::string, double> out;
    for (const Gap& g : gaps_of({scenarios::read_scenario(kRun, overrides)}, kAll).gaps)
      out[g.kernel] += g.share;
    return out;
  };
  const auto optimus = shares({"strategy.encoder_tensor_model_parallel_size=2"});
  const auto baseline = shares({"strategy={name=\"baseline\"}"});
  ASSERT_EQ(optimus.size(), baseline.size());
  for (const auto& [kernel, share_there] : baseline)
    EXPECT_NEAR(optimus.at(kernel), share_there, 1e-9) << kernel;
}

}  // namespace
}  // namespace mllmsim::analysis
