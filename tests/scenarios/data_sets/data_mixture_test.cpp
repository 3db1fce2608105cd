// Mixtures: what is generated is what the file says, and the shipped one has the published
// statistics.
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/data_sets/data_mixture.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/data/packing/isf.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

constexpr const char* kMixture = R"(
tokens_per_tile = 100
[[sets]]
name = "images"
samples = 20_000
tiles = { 1 = 0.5, 3 = 0.3, 5 = 0.2 }
text = { shift = 50, median = 40, sigma = 0.5, max = 400 }
[[sets]]
name = "texts"
samples = 10
text_only = true
text = { median = 5000 }
)";

Mixture read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Directory dir;
  return read_mixture(dir.write("m.toml", text).string(), overrides);
}

std::string problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Mixture, FollowsItsHistogramAndItsText) {
  const DataSet data = generate(read(kMixture), 1);
  double one = 0, text = 0;
  for (std::size_t i = 0; i < 20000; ++i) {
    one += data.samples[i].tiles == 1;
    text += data.samples[i].tokens - 100 * data.samples[i].tiles;
  }
  EXPECT_NEAR(one / 20000, 0.5, 0.01);
  EXPECT_NEAR(text / 20000, 50 + 40 * std::exp(0.5 * 0.5 / 2), 0.5);  // the mean of a log-normal
}

TEST(Mixture, GivesTextOnlySamplesOneEmptyTileAndCapsTokens) {
  const DataSet data = generate(read(kMixture), 1);
  EXPECT_EQ(data.sets[1], (SampleSet{"texts", 20000, 20010}));
  EXPECT_EQ(data.samples.back(), (Sample{1, 4096}));
}

TEST(Mixture, IsTheSameForASeedOnEveryMachine) {
  const DataSet data = generate(read(kMixture), 1);
  EXPECT_EQ(data, generate(read(kMixture), 1));
  EXPECT_FALSE(data == generate(read(kMixture), 2));
  const std::vector<Sample> first(data.samples.begin(), data.samples.begin() + 4);
  EXPECT_EQ(first, (std::vector<Sample>{{1, 181}, {1, 172}, {3, 391}, {1, 193}}));
}

TEST(Mixture, FallsBackToSmallerGrids) {
  // 5 tiles are 2x2 and a thumbnail, 3 are 1x2 and one. With at most 2, a square picture is one
  // tile.
  const DataSet data = generate(read(kMixture, {"max_tiles=2"}), 1);
  for (const Sample& s : data.samples) EXPECT_TRUE(s.tiles == 1 || s.tiles == 3);
  for (const Sample& s : generate(read(kMixture, {"max_tiles=1"}), 1).samples)
    EXPECT_EQ(s.tiles, 1);
}

TEST(Mixture, ReportsEverythingWrongAtOnce) {
  const std::string problems = problems_of(
      "max_tilse = 3\n[[sets]]\nname = \"a\"\nsamples = 0\ntiles = { one = 1 }\ntext = { sigma = 1 "
      "}\n");
  for (const char* part : {"did you mean \"max_tiles\"", "sets.0.samples",
                           "expected a number of tiles", "sets.0.text.median: missing"})
    EXPECT_NE(problems.find(part), std::string::npos) << part << " in\n" << problems;
  EXPECT_NE(problems_of(kMixture, {"max_tiles=9"}).find("measured_max_tiles = 4"),
            std::string::npos);
  EXPECT_NE(problems_of("").find("[[sets]]"), std::string::npos);
}

TEST(Mixture, NamesTheNearestShippedOne) {
  try {
    read_mixture("internvl-1.2");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"internvl-1.2m\""), std::string::npos);
  }
}

TEST(Mixture, EveryShippedOneReads) {
  EXPECT_EQ(shipped_data_sets().size(), 3u);
  for (const ShippedFile& file : shipped_data_sets())
    EXPECT_NE(read_mixture(file.name).description, "") << file.name;
}

// Published: OmniBal (arXiv 2407.20761). The mixture was fitted to these figures, except the
// thresholds Q_t - 64 and Q_t - 256. Tolerance 15 % or 0.01.
class InternVl : public testing::Test {
 protected:
  static void SetUpTestSuite() { data_ = new DataSet(generate(read_mixture("internvl-1.2m"), 1)); }
  static void TearDownTestSuite() { delete data_; }
  static void expect_published(double value, double published) {
    EXPECT_NEAR(value, published, std::max(0.15 * published, 0.01));
  }
  static const std::vector<Sample>& samples() { return data_->samples; }
  static DistRatio isf_ratio(PackLimits keep) {
    const Packing packing = pack_isf(samples(), {.limits = {9, 4096}, .keep = keep});
    return dist_ratio(samples(), batches_of_packs(packing.packs, 8, 1, 1));
  }
  static inline DataSet* data_ = nullptr;
};

TEST_F(InternVl, HasThePublishedSets) {
  EXPECT_EQ(samples().size(), 1'267'819u);
  EXPECT_EQ(data_->sets.size(), 9u);
}

// Means of the published lengths of these sets: tiles, tokens.
TEST_F(InternVl, FollowsTheSetsWhoseLengthsArePublished) {
  const std::vector<std::tuple<std::string, double, double>> published = {
      {"ai2d_train_12k", 2.487, 691.0},
      {"chartqa_train_18k", 4.753, 1305.4},
      {"docvqa_train_10k", 4.620, 1465.0},
      {"synthdog_en", 3.839, 1103.3}};
  for (const auto& [name, tiles, tokens] : published)
    for (const SampleSet& set : data_->sets) {
      if (set.name != name) continue;
      const Load sum = total(std::span(samples()).subspan(set.begin, set.size()));
      const auto count = static_cast<double>(set.size());
      EXPECT_NEAR(static_cast<double>(sum.tiles) / count, tiles, 0.02 * tiles) << name;
      EXPECT_NEAR(static_cast<double>(sum.tokens) / count, tokens, 0.02 * tokens) << name;
    }
}

TEST_F(InternVl, HasThePublishedRatiosInRandomMicroBatches) {
  const Batches random = make_batches(samples(), {.micro_batch_size = 4, .ranks = 8});
  expect_published(pad_ratio(samples(), random), 0.31);
  expect_published(dist_ratio(samples(), random).tiles, 0.34);
  expect_published(dist_ratio(samples(), random).tokens, 0.30);
}

TEST_F(InternVl, PacksAsPublished) {
  EXPECT_EQ(choose_limits(samples()), (PackLimits{9, 4096}));
  const Packing packing = pack_isf(samples(), {.limits = {9, 4096}});
  EXPECT_NEAR(static_cast<double>(samples().size()) / static_cast<double>(packing.packs.size()),
              4.6, 0.1);
}

TEST_F(InternVl, HasThePublishedRatiosInPacks) {
  const std::vector<std::tuple<PackLimits, double, double>> published = {
      {{9, 4096 - 64}, 0.0159, 0.145},
      {{9, 4096 - 128}, 0.0156, 0.144},
      {{9, 4096 - 256}, 0.018, 0.141}};
  for (const auto& [keep, tiles, tokens] : published) {
    const DistRatio ratio = isf_ratio(keep);
    expect_published(ratio.tiles, tiles);
    expect_published(ratio.tokens, tokens);
  }
  expect_published(isf_ratio({8, 4096 - 128}).tiles, 0.0417);
}

TEST_F(InternVl, PacksSevenAndAHalfSamplesOfOneTile) {
  const DataSet one_tile = generate(read_mixture("internvl-1.2m", {"max_tiles=1"}), 1);
  const Packing packing = pack_isf(one_tile.samples, {.limits = choose_limits(one_tile.samples)});
  EXPECT_NEAR(static_cast<double>(samples().size()) / static_cast<double>(packing.packs.size()),
              7.6, 0.2);
}

}  // namespace
}  // namespace mllmsim::test
