// Packing: tiny sets by hand, then what must hold for any.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "strategies/data/batching.hpp"
#include "strategies/data/packing/best_fit.hpp"
#include "strategies/data/packing/isf.hpp"

namespace mllmsim {
using namespace data;
namespace {

using Samples = std::vector<Sample>;

std::vector<Load> loads(const Samples& samples, const Packing& packing) {
  std::vector<Load> out;
  for (std::size_t p = 0; p < packing.packs.size(); ++p)
    out.push_back(total(samples, packing.packs[p]));
  return out;
}

TEST(Isf, FillsUntilTheNextSampleWouldPassALimit) {
  // Twelve samples of 3 tiles: three fill a pack exactly, in whatever order.
  const Samples samples(12, Sample{3, 800});
  const Packing packing = pack_isf(samples, {.limits = {9, 4096}});
  EXPECT_EQ(loads(samples, packing), std::vector<Load>(4, Load{9, 2400}));
}

TEST(Isf, ClosesAPackByTokensToo) {
  const Samples samples(8, Sample{1, 2000});
  const Packing packing = pack_isf(samples, {.limits = {9, 4096}});
  EXPECT_EQ(loads(samples, packing), std::vector<Load>(4, Load{2, 4000}));
}

TEST(Isf, DissolvesWhatIsNotFullAndPacksItAgain) {
  // 5 + 4 is full; 5 and 4 4 are not. One pass in random order leaves some 5 alone or 4 4 together;
  // ten rounds pair nearly all.
  Samples samples(200, Sample{5, 1300});
  samples.insert(samples.end(), 200, Sample{4, 1000});
  const auto full = [&](int rounds) {
    const Packing packing = pack_isf(samples, {.limits = {9, 4096}, .rounds = rounds});
    const auto l = loads(samples, packing);
    return std::count(l.begin(), l.end(), Load{9, 2300});
  };
  EXPECT_LT(full(0), 140);
  EXPECT_GT(full(10), 180);
}

TEST(Isf, GivesAnOversizedSampleItsOwnPackAndSaysSo) {
  const Samples samples = {{1, 300}, {1, 5000}, {12, 3500}, {1, 300}};
  const Packing packing = pack_isf(samples, {.limits = {9, 4096}});
  EXPECT_EQ(packing.oversized, (std::vector<SampleIndex>{1, 2}));
  EXPECT_EQ(packing.packs.size(), 3u);
}

TEST(Isf, OfNothingIsNothing) { EXPECT_EQ(pack_isf({}, {.limits = {9, 4096}}).packs.size(), 0u); }

TEST(BestFit, FillsTilesAndEvensOutTokens) {
  // Two packs of 9 tiles: 5 and four ones each. The ones sum to 4000, so each pack gets 2000 of
  // them: 800 + 600 + 400 + 200 and 700 + 500 + 500 + 300.
  const Samples samples = {{5, 1300}, {5, 1300}, {1, 800}, {1, 700}, {1, 600},
                           {1, 500},  {1, 500},  {1, 400}, {1, 300}, {1, 200}};
  const Packing packing = pack_best_fit(samples, {9, 4096});
  EXPECT_EQ(loads(samples, packing), std::vector<Load>(2, Load{9, 3300}));
}

TEST(BestFit, PacksByTokensWhereTheyAreScarce) {
  const Samples samples(8, Sample{1, 2000});
  EXPECT_EQ(loads(samples, pack_best_fit(samples, {9, 4096})), std::vector<Load>(4, Load{2, 4000}));
}

TEST(BestFit, TakesSamplesWithoutTiles) {
  const Samples samples = {{0, 1000}, {0, 1000}, {9, 2000}};
  EXPECT_EQ(loads(samples, pack_best_fit(samples, {9, 4096})), (std::vector<Load>{{9, 4000}}));
}

TEST(BestFit, OfNothingIsNothing) { EXPECT_EQ(pack_best_fit({}, {9, 4096}).packs.size(), 0u); }

// Mixed data, as in a real set: many samples of one tile, some of 3 and 5, text of all lengths.
Samples mixed_samples() {
  Samples samples;
  for (std::int32_t i = 0; i < 20000; ++i) {
    const std::int32_t tiles = i % 10 < 6 ? 1 : i % 10 < 9 ? 3 : 5;
    samples.push_back({tiles, tiles * 256 + 50 + i * 7919 % 350});
  }
  return samples;
}

TEST(BestFit, NeedsAlmostNoMorePacksThanTheBound) {
  const Samples samples = mixed_samples();
  const auto bound = static_cast<double>(fewest_packs(samples, {9, 4096}));
  EXPECT_LT(static_cast<double>(pack_best_fit(samples, {9, 4096}).packs.size()), 1.002 * bound);
}

TEST(BestFit, MakesPacksMoreEqualThanIsf) {
  const Samples samples = mixed_samples();
  const auto ratio = [&](const Packing& p) {
    return dist_ratio(samples, batches_of_packs(p.packs, 8, 1, 1));
  };
  const DistRatio best_fit = ratio(pack_best_fit(samples, {9, 4096}));
  const DistRatio isf = ratio(pack_isf(samples, {.limits = {9, 4096}}));
  EXPECT_LT(best_fit.tiles, isf.tiles);
  EXPECT_LT(best_fit.tokens, isf.tokens);
}

TEST(Limits, Are4096TokensAndTheTilesThatGoWithThem) {
  // Tokens per tile: 400 and 600, 500 in the mean; 4096 / 500 = 8.2 tiles.
  EXPECT_EQ(choose_limits(Samples{{1, 400}, {4, 2400}}), (PackLimits{8, 4096}));
}

TEST(Limits, HoldTheLargestSample) {
  EXPECT_EQ(choose_limits(Samples{{12, 1200}, {1, 1100}}), (PackLimits{12, 4096}));
  EXPECT_EQ(choose_limits(Samples{{1, 1000}, {1, 5000}}), (PackLimits{2, 5000}));
}

// 9 tiles are full, and so are 8 if that is the threshold; but 9 then are not.
TEST(Isf, KeepsPacksWithExactlyTheThresholdOfTiles) {
  Samples samples(2, Sample{3, 300});
  samples.insert(samples.end(), 2, Sample{2, 200});  // 3 + 3 + 2 = 8; 3 + 2 + 2 = 7
  const auto packs = [&](PackLimits keep) {
    return loads(samples, pack_isf(samples, {.limits = {8, 4096}, .keep = keep, .rounds = 200}));
  };
  const auto eight = packs({8, 4096});
  EXPECT_EQ(std::count(eight.begin(), eight.end(), Load{8, 800}), 1);
  const auto seven = packs({7, 4096});
  EXPECT_EQ(std::count(seven.begin(), seven.end(), Load{7, 700}), 1);
}

TEST(FewestPacks, IsTheFullerOfBothAxes) {
  EXPECT_EQ(fewest_packs(Samples(10, Sample{3, 100}), {9, 4096}), 4u);   // 30 tiles / 9
  EXPECT_EQ(fewest_packs(Samples(10, Sample{1, 1000}), {9, 4096}), 3u);  // 10,000 tokens / 4096
}

TEST(FewestPacks, KnowsThatHalvesDoNotShare) {
  // 50 tiles / 9 would be 6 packs, but no two samples of 5 tiles go together.
  EXPECT_EQ(fewest_packs(Samples(10, Sample{5, 1300}), {9, 4096}), 10u);
}

TEST(FewestPacks, KnowsThatALongTextLeavesTilesEmpty) {
  // Each of the two long samples leaves 96 tokens, room for no tile of 300 tokens: 2 packs, and 9
  // tiles make a third.
  Samples samples(9, Sample{1, 300});
  samples.insert(samples.end(), 2, Sample{1, 4000});
  EXPECT_EQ(fewest_packs(samples, {9, 4096}), 3u);
}

TEST(FewestPacks, CountsOversizedSamples) {
  EXPECT_EQ(fewest_packs(Samples{{1, 5000}, {1, 5000}, {1, 10}}, {9, 4096}), 3u);
}

Samples any_samples() {
  Samples samples;
  const auto tiles = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 14));
  for (const int t : tiles) samples.push_back({t, *rc::gen::inRange(1, 5000)});
  return samples;
}

void expect_a_packing(const Samples& samples, const Packing& packing, const PackLimits& limits) {
  std::vector<SampleIndex> members = packing.packs.indices;
  std::sort(members.begin(), members.end());
  RC_ASSERT(members.size() == samples.size());
  for (std::size_t i = 0; i < members.size(); ++i) RC_ASSERT(members[i] == i);
  RC_ASSERT(packing.packs.offsets.back() == members.size());
  std::size_t over = 0;
  for (std::size_t p = 0; p < packing.packs.size(); ++p) {
    const auto pack = packing.packs[p];
    RC_ASSERT(!pack.empty());
    if (fits(total(samples, pack), limits)) continue;
    RC_ASSERT(pack.size() == 1u);
    RC_ASSERT(std::count(packing.oversized.begin(), packing.oversized.end(), pack[0]) == 1);
    ++over;
  }
  RC_ASSERT(over == packing.oversized.size());
  RC_ASSERT(packing.packs.size() >= fewest_packs(samples, limits));
}

RC_GTEST_PROP(Isf, PutsEverySampleIntoOnePackWithinTheLimits, ()) {
  const Samples samples = any_samples();
  const PackLimits limits{*rc::gen::inRange(1, 20), *rc::gen::inRange(100, 6000)};
  const IsfOptions options{.limits = limits, .rounds = *rc::gen::inRange(0, 12)};
  expect_a_packing(samples, pack_isf(samples, options), limits);
}

RC_GTEST_PROP(BestFit, PutsEverySampleIntoOnePackWithinTheLimits, ()) {
  const Samples samples = any_samples();
  const PackLimits limits{*rc::gen::inRange(1, 20), *rc::gen::inRange(100, 6000)};
  expect_a_packing(samples, pack_best_fit(samples, limits), limits);
}

RC_GTEST_PROP(Isf, GivesTheSamePacksForTheSameSeed, (std::uint64_t seed)) {
  const Samples samples = any_samples();
  const IsfOptions options{.limits = {9, 4096}, .seed = seed};
  RC_ASSERT(pack_isf(samples, options).packs == pack_isf(samples, options).packs);
}

}  // namespace
}  // namespace mllmsim
