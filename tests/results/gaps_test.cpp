// Kernels of a run and their shares, encoders beside the LLM's pipeline included.
#include "results/analysis/gaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "results/run/run_scenario.hpp"

namespace mllmsim::analysis {
namespace {

constexpr const char* kRun = "vit-3b-gpt-11b-a100x8";

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
  EXPECT_NEAR(share(gaps_of(scenarios::read_scenario(kRun), true)), 1, 1e-9);
}

// The ViT has 18 heads of 128; with tp 1 of its own, beside an LLM with tp 2, a GPU has them all.
TEST(Gaps, EncodersBesideThePipelineHaveTheirOwnSizes) {
  const scenarios::Scenario optimus =
      scenarios::read_scenario(kRun, {"strategy.encoder_tensor_model_parallel_size=1"});
  EXPECT_TRUE(lists(gaps_of(optimus, true), "attention 1 x 2048 heads 18 of 128"));
}

// Both strategies run the same layers with the same sizes, wherever they put them.
TEST(Gaps, OptimusHasTheKernelsOfTheBaseline) {
  const auto kernels = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> out;
    for (const Gap& g : gaps_of(scenarios::read_scenario(kRun, overrides), true).gaps)
      out.push_back(g.kernel);
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(kernels({"strategy.encoder_tensor_model_parallel_size=2"}),
            kernels({"strategy={name=\"baseline\"}"}));
}

TEST(Gaps, SharesBySourceAreThoseThatTheRunReports) {
  const scenarios::Scenario scenario = scenarios::read_scenario(kRun);
  std::array<double, costs::kSources> shares{};
  for (const Gap& g : gaps_of(scenario, true).gaps)
    shares[static_cast<std::size_t>(g.source)] += g.share;
  const results::RunResult run = results::run_scenario(scenario, {.timeline = false});
  for (std::size_t i = 0; i < costs::kSources; ++i)
    EXPECT_NEAR(shares[i], run.source_shares[i], 1e-3);
}

}  // namespace
}  // namespace mllmsim::analysis
