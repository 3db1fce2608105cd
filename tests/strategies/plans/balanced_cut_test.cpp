#include "strategies/plans/balanced_cut.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace mllmsim::plans {
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

// Two ranks, two chunks, six layers: with both layers of 2 alone in the first chunk a round takes
// 2 + 2; any stage of 2 ones in the first chunk would leave a heavier second.
TEST(CutByChunks, PutsHeavyPartsIntoTheSameChunk) {
  EXPECT_EQ(cut_by_chunks({2, 2, 1, 1, 1, 1}, 2, 2), (Sizes{1, 1, 2, 2}));
  EXPECT_EQ(cut_by_chunks({1, 1, 1, 1, 2, 2}, 2, 2), (Sizes{2, 2, 1, 1}));
}

double round_of(const std::vector<double>& w, const Sizes& sizes, std::size_t ranks) {
  double sum = 0, most = 0;
  for (std::size_t k = 0, at = 0; k < sizes.size(); ++k) {
    double part = 0;
    for (std::size_t i = 0; i < sizes[k]; ++i) part += w[at++];
    most = k % ranks == 0 ? part : std::max(most, part);
    if (k % ranks + 1 == ranks) sum += most;
  }
  return sum;
}

TEST(CutByChunks, NoCutHasAShorterRound) {
  EXPECT_TRUE(rc::check([] {
    const auto w = *rc::gen::container<std::vector<double>>(
        8, rc::gen::map(rc::gen::inRange(1, 50), [](int i) { return static_cast<double>(i); }));
    const double found = round_of(w, cut_by_chunks(w, 2, 2), 2);
    for (std::size_t i = 1; i < 6; ++i)
      for (std::size_t j = i + 1; j < 7; ++j)
        for (std::size_t k = j + 1; k < 8; ++k)
          RC_ASSERT(found <= round_of(w, {i, j - i, k - j, 8 - k}, 2) * (1 + 1e-6));
  }));
}

// Ten thousand layers, one of a thousand twice as heavy: no round is shorter than an even share of
// each rank, and one step of 1/256 of the layers for each chunk is the most that is lost.
TEST(CutByChunks, OfVeryManyLayersIsNearTheBest) {
  std::vector<double> w(10'000, 1);
  for (std::size_t i = 0; i < w.size(); i += 1000) w[i] = 2;
  const double share = 10'010.0 / 4;
  const Sizes sizes = cut_by_chunks(w, 4, 3);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), w.size());
  EXPECT_LE(round_of(w, sizes, 4), share + 3 * (10'000.0 / 256));
  // Where chunks may begin is never so coarse that there is no cut.
  EXPECT_EQ(cut_by_chunks(std::vector<double>(301, 1), 43, 7), Sizes(301, 1));
}

TEST(BalancedCut, SlackLetsTheLargestPartGrowForTheOthersToBeAlike) {
  const std::vector<double> w = {4, 3, 3, 4, 1};
  EXPECT_LE(balanced_cut(w, 3).front(), 2U);
  for (const double slack : {0.1, 0.5, 1.0}) EXPECT_EQ(balanced_cut(w, 3, slack).size(), 3U);
}

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

// The same by looking at every j.
Sizes plain_cut(const std::vector<double>& w, std::size_t parts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::size_t n = w.size();
  std::vector<double> before(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + w[i];
  double limit = kInfinity;
  std::vector<std::vector<std::size_t>> from;
  for (const bool squares : {false, true}) {
    std::vector<std::vector<double>> best(parts + 1, std::vector<double>(n + 1, kInfinity));
    from.assign(parts + 1, std::vector<std::size_t>(n + 1, 0));
    best[0][0] = 0;
    for (std::size_t m = 1; m <= parts; ++m)
      for (std::size_t l = m; l <= n; ++l)
        for (std::size_t j = m - 1; j < l; ++j) {
          const double part = before[l] - before[j];
          const double value = part > limit ? kInfinity
                               : squares    ? best[m - 1][j] + part * part
                                            : std::max(best[m - 1][j], part);
          if (value >= best[m][l] * (squares ? 1 - 1e-9 : 1)) continue;  // rounding is none
          best[m][l] = value;
          from[m][l] = j;
        }
    limit = best[parts][n] * (1 + 1e-12);
  }
  Sizes sizes(parts);
  for (std::size_t m = parts, l = n; m > 0; --m) {
    sizes[m - 1] = l - from[m][l];
    l = from[m][l];
  }
  return sizes;
}

// Kinds of layers that repeat, as models have, give many cuts that are equally good.
TEST(BalancedCut, IsTheCutThatLookingEverywhereFinds) {
  EXPECT_TRUE(rc::check([] {
    const auto kinds = *rc::gen::container<std::vector<double>>(
        3, rc::gen::map(rc::gen::inRange(0, 1000), [](int i) { return 0.0123 * i; }));
    const auto layers =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(rc::gen::elementOf(kinds)));
    const auto parts = *rc::gen::inRange<std::size_t>(1, layers.size() + 1);
    RC_ASSERT(balanced_cut(layers, parts) == plain_cut(layers, parts));
  }));
}

}  // namespace
}  // namespace mllmsim::plans
