// Micro-batches: who is with whom, what is dropped, and the two ratios by hand.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "strategies/data/batching.hpp"

namespace mllmsim {
using namespace data;
namespace {

using Samples = std::vector<Sample>;

// Micro-batches of two samples given as indices, for `ranks` ranks.
Batches pairs(std::vector<SampleIndex> indices, std::int64_t ranks) {
  Batches b;
  b.ranks = ranks;
  b.micro_batches.indices = std::move(indices);
  for (std::uint32_t end = 2; end <= b.micro_batches.indices.size(); end += 2)
    b.micro_batches.offsets.push_back(end);
  return b;
}

TEST(PadRatio, IsThePaddedShareOfAllTokens) {
  // [100 400] pads to 800, [400 400] to 800: 300 of 1600.
  const Samples samples = {{1, 100}, {1, 400}, {1, 400}, {1, 400}};
  EXPECT_DOUBLE_EQ(pad_ratio(samples, pairs({0, 1, 2, 3}, 2)), 300. / 1600);
}

TEST(PadRatio, IsNothingForPacks) {
  Batches packs = pairs({0, 1}, 1);
  packs.joining = Joining::packed;
  EXPECT_EQ(pad_ratio(Samples{{1, 100}, {1, 400}}, packs), 0);
}

TEST(DistRatio, ComparesTheRanksOfOnePosition) {
  // Position 0: 2 and 6 tiles, so (6 - 2) / (6 * 2); 800 padded tokens each.
  // Position 1: 4 and 4 tiles; 200 and 800 tokens.
  const Samples samples = {{1, 100}, {1, 400}, {3, 400}, {3, 400},
                           {2, 100}, {2, 100}, {2, 400}, {2, 400}};
  const DistRatio ratio = dist_ratio(samples, pairs({0, 1, 2, 3, 4, 5, 6, 7}, 2));
  EXPECT_DOUBLE_EQ(ratio.tiles, (4. / 12 + 0) / 2);
  EXPECT_DOUBLE_EQ(ratio.tokens, (0 + 600. / 1600) / 2);
}

TEST(DistRatio, CountsPacksWithoutPadding) {
  Batches packs = pairs({0, 1, 2, 3}, 2);
  packs.joining = Joining::packed;
  const Samples samples = {{1, 100}, {1, 400}, {1, 400}, {1, 400}};  // 500 and 800
  EXPECT_DOUBLE_EQ(dist_ratio(samples, packs).tokens, 300. / 1600);
}

TEST(Batches, DropWhatDoesNotFillAStep) {
  // A step takes 2 samples * 2 ranks * 3 positions = 12; 30 samples are 2 steps.
  const Batches b = make_batches(Samples(30, Sample{1, 300}),
                                 {.micro_batch_size = 2, .ranks = 2, .micro_batches_per_rank = 3});
  EXPECT_EQ(b.steps(), 2);
  EXPECT_EQ(b.micro_batches.size(), 12u);
}

TEST(Batches, OfPacksKeepEachPackWhole) {
  SampleGroups packs;
  packs.indices = {0, 1, 2, 3, 4, 5};
  packs.offsets = {0, 3, 4, 6};
  const Batches b = batches_of_packs(packs, 1, 1, 7);
  std::vector<std::size_t> sizes;
  for (std::int64_t step = 0; step < b.steps(); ++step) sizes.push_back(b.at(step, 0, 0).size());
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 3}));
}

std::vector<std::vector<std::int32_t>> tokens_of(const Samples& samples, const Batches& b) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::size_t m = 0; m < b.micro_batches.size(); ++m) {
    out.emplace_back();
    for (const SampleIndex i : b.micro_batches[m]) out.back().push_back(samples[i].tokens);
  }
  return out;
}

const Samples kEight = {{1, 300}, {1, 800}, {1, 100}, {1, 600},
                        {1, 200}, {1, 700}, {1, 400}, {1, 500}};

// Bins of 400 tokens: 100, 200 and 300, then 400 to 700, then 800; in any order inside a bin.
TEST(LengthGroup, TakesBinsOfSimilarLengthOneAfterTheOther) {
  const Batches b = make_batches(
      kEight, {.batching = Batching::length, .micro_batch_size = 2, .ranks = 2, .length_bin = 400});
  std::vector<std::int32_t> bins;
  for (std::size_t step = 0; step < 2; ++step)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t rank = 0; rank < 2; ++rank)  // in turn
        bins.push_back(kEight[b.micro_batches[2 * step + rank][i]].tokens / 400);
  EXPECT_EQ(bins, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 1, 2}));
}

// Two ranks of four: the first has samples 0 to 3, the second 4 to 7, in the same order.
TEST(Random, RanksHaveStretchesOfTheDataInOneShuffledOrder) {
  const Batches b = make_batches(kEight, {.micro_batch_size = 2, .ranks = 2});
  ASSERT_EQ(b.micro_batches.size(), 4U);
  for (std::size_t m = 0; m < 4; m += 2)
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_LT(b.micro_batches[m][i], 4U);
      EXPECT_EQ(b.micro_batches[m + 1][i], b.micro_batches[m][i] + 4);
    }
}

TEST(DeviceGroup, GivesTheNextSampleToTheRankWithTheFewestTokens) {
  // Two ranks, four samples each. 800 | 700; 600 to the second, 500 to the first: both 1300;
  // 400 | 300; 200 to the second, 100 to the first.
  const Batches b =
      make_batches(kEight, {.batching = Batching::device, .micro_batch_size = 4, .ranks = 2});
  const std::vector<std::vector<std::int32_t>> expected = {{800, 500, 400, 100},
                                                           {700, 600, 300, 200}};
  EXPECT_EQ(tokens_of(kEight, b), expected);
}

RC_GTEST_PROP(Batches, UseNoSampleTwice, ()) {
  const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 5000));
  Samples samples;
  for (const int tokens : lengths) samples.push_back({1, tokens});
  BatchOptions options;
  options.batching = *rc::gen::element(Batching::random, Batching::length, Batching::device);
  options.micro_batch_size = *rc::gen::inRange(1, 5);
  options.ranks = *rc::gen::inRange(1, 5);
  options.micro_batches_per_rank = *rc::gen::inRange(1, 3);
  options.length_bin = *rc::gen::inRange(1, 900);
  const Batches b = make_batches(samples, options);
  std::vector<SampleIndex> used = b.micro_batches.indices;
  std::sort(used.begin(), used.end());
  const bool twice = std::adjacent_find(used.begin(), used.end()) != used.end();
  RC_ASSERT(!twice);
  const bool known = used.empty() || used.back() < samples.size();
  RC_ASSERT(known);  // RC_ASSERT evaluates both sides of ||
  const auto a_step =
      static_cast<std::size_t>(options.micro_batch_size * b.micro_batches_per_step());
  RC_ASSERT(samples.size() - used.size() < a_step);
}

}  // namespace
}  // namespace mllmsim
