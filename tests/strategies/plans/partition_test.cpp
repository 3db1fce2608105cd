#include "strategies/plans/partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

namespace mllmsim {
using namespace data;
using namespace plans;
namespace {

using Sizes = std::vector<std::size_t>;

TEST(BalancedCut, MinimisesTheLargestPart) {
  EXPECT_EQ(balanced_cut({5, 1, 1, 1, 1, 1}, 2), (Sizes{1, 5}));
  EXPECT_EQ(balanced_cut({1, 1, 1, 1, 1, 5}, 2), (Sizes{5, 1}));
}

// {5}, {1 x 5} has largest part 5 however the ones are cut; the even cut of the ones is the better
// pipeline.
TEST(BalancedCut, AmongEqualsIsTheMostEven) {
  EXPECT_EQ(balanced_cut({5, 1, 1, 1, 1}, 3), (Sizes{1, 2, 2}));
}

TEST(BalancedCut, NoPartIsEmpty) { EXPECT_EQ(balanced_cut({1, 0, 0}, 3), (Sizes{1, 1, 1})); }

double largest(const std::vector<double>& w, const Sizes& sizes) {
  double most = 0;
  auto at = w.begin();
  for (std::size_t n : sizes) {
    most = std::max(most, std::accumulate(at, at + static_cast<std::ptrdiff_t>(n), 0.0));
    at += static_cast<std::ptrdiff_t>(n);
  }
  return most;
}

TEST(BalancedCut, NoCutIsBetter) {
  EXPECT_TRUE(rc::check([] {
    const auto w = *rc::gen::container<std::vector<double>>(
        8, rc::gen::map(rc::gen::inRange(0, 50), [](int i) { return static_cast<double>(i); }));
    const double found = largest(w, balanced_cut(w, 3));
    for (std::size_t i = 1; i < 7; ++i)
      for (std::size_t j = i + 1; j < 8; ++j)
        RC_ASSERT(found <= largest(w, {i, j - i, 8 - j}) + 1e-9);
  }));
}

TEST(BlockGroups, KeepEmbeddingsProjectorsAndHeadsWithABlock) {
  const auto e = LayerKind::embedding, b = LayerKind::block, p = LayerKind::projector,
             h = LayerKind::head;
  std::vector<Layer> layers;
  for (LayerKind k : {e, b, b, p, e, b, b, h}) layers.push_back({k, 0, 0});
  EXPECT_EQ(block_groups(layers), (Sizes{2, 2, 2, 2}));
}

}  // namespace
}  // namespace mllmsim
