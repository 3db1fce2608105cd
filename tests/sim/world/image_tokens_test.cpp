// Pictures by each family's rule, against numbers worked out from its processor by hand.
#include "sim/world/image_tokens.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

// 448-pixel tiles of 1,025 tokens, 256 for the LLM; up to 12 and a thumbnail.
Encoder internvit() {
  Encoder e;
  e.tokens_per_tile = 1025;
  e.output_tokens_per_tile = 256;
  e.image.rule = Images::tiles;
  e.image.tile_size = 448;
  e.image.patch_size = 14;
  e.image.max_tiles = 12;
  return e;
}

std::int64_t tiles(const Encoder& e, std::int64_t height, std::int64_t width) {
  return image_tokens(e, {height, width}).encoder.front().count;
}

TEST(ImageTokens, InternVlTakesTheGridOfTheNearestShape) {
  EXPECT_EQ(tiles(internvit(), 448, 448), 1);        // as it is: no thumbnail
  EXPECT_EQ(tiles(internvit(), 448, 896), 2 + 1);    // 1 x 2
  EXPECT_EQ(tiles(internvit(), 896, 896), 4 + 1);    // 2 x 2: enough pixels for it
  EXPECT_EQ(tiles(internvit(), 1080, 1920), 8 + 1);  // 16:9 is nearest to 2:1, best of 2 x 4
  EXPECT_EQ(tiles(internvit(), 4000, 4000), 9 + 1);  // 3 x 3 is the largest square
  EXPECT_EQ(image_tokens(internvit(), {896, 896}).llm, 5 * 256);
  EXPECT_EQ(image_tokens(internvit(), {896, 896}, 8).llm, 8 * 256);  // frames are tiles
}

// Patches of 14, 2 x 2 merged: sides are rounded to 28 pixels.
Encoder qwen() {
  Encoder e;
  e.tokens_per_output_token = 4;
  e.image.rule = Images::native;
  e.image.patch_size = 14;
  e.image.min_pixels = 3136;
  e.image.max_pixels = 1003520;
  e.image.temporal_patch_size = 2;
  return e;
}

TEST(ImageTokens, QwenKeepsThePictureWithinLimits) {
  // 224 x 224: 16 x 16 patches, 8 x 8 tokens.
  EXPECT_EQ(image_tokens(qwen(), {224, 224}).encoder, (std::vector<SequenceGroup>{{256, 1}}));
  EXPECT_EQ(image_tokens(qwen(), {224, 224}).llm, 64);
  // 300 / 28 = 10.7 -> 11, 400 / 28 = 14.3 -> 14.
  EXPECT_EQ(image_tokens(qwen(), {300, 400}).llm, 11 * 14);
  // 1080 x 1920 has 2,073,600 pixels: beta = 1.43748; 751.3 / 28 = 26, 1335.7 / 28 = 47.
  EXPECT_EQ(image_tokens(qwen(), {1080, 1920}).llm, 26 * 47);
  // 28 x 28 has 784: beta = 2; 56 / 28 = 2 a side.
  EXPECT_EQ(image_tokens(qwen(), {28, 28}).llm, 4);
}

// 8 frames are 4 pairs, each a sequence; limits count all frames.
TEST(ImageTokens, QwenMakesASequenceOfEveryPairOfFrames) {
  const MediaTokens video = image_tokens(qwen(), {224, 224}, 8);
  EXPECT_EQ(video.encoder, (std::vector<SequenceGroup>{{256, 4}}));
  EXPECT_EQ(video.llm, 4 * 64);
}

// 336-pixel tiles of 24 x 24 patches.
Encoder clip() {
  Encoder e;
  e.tokens_per_tile = 577;
  e.output_tokens_per_tile = 576;
  e.image.rule = Images::anyres;
  e.image.tile_size = 336;
  e.image.patch_size = 14;
  e.image.grids = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  return e;
}

// 300 x 600 fills 336 x 672, and 500 x 1000 too: 672 x 672 keeps no more of it and wastes half. 24
// rows of 48, an end each. Of 240 x 600, 240 * 48 / 600 = 19 rows are picture, 4 of 5 others go.
TEST(ImageTokens, LlavaTakesPaddingOutOfItsGrid) {
  EXPECT_EQ(tiles(clip(), 500, 1000), 1 + 2);
  EXPECT_EQ(tiles(clip(), 300, 600), 1 + 2);
  EXPECT_EQ(image_tokens(clip(), {300, 600}).llm, 576 + 24 * 48 + 24);
  EXPECT_EQ(tiles(clip(), 240, 600), 1 + 2);
  EXPECT_EQ(image_tokens(clip(), {240, 600}).llm, 576 + 20 * 48 + 20);
}

TEST(ImageTokens, LlavaOneVisionResizesFeaturesDown) {
  Encoder e = clip();
  e.tokens_per_tile = e.output_tokens_per_tile = 729;
  e.image.tile_size = 384;
  e.image.grids = {{2304, 2304}};
  e.image.most_tiles = 9;
  // 162 x 162 features over 9 x 729: ratio 2, so 81 x 81 and 81 ends.
  EXPECT_EQ(image_tokens(e, {2304, 2304}).llm, 729 + 81 * 81 + 81);
  EXPECT_EQ(image_tokens(e, {2304, 2304}).encoder.front().count, 1 + 36);
}

TEST(ImageTokens, SoundIsSpansOfThirtySeconds) {
  Encoder e;
  e.tokens_per_tile = 1500;
  e.output_tokens_per_tile = 750;
  e.image.rule = Images::audio;
  const MediaTokens m = audio_tokens(e, 45);
  EXPECT_EQ(m.encoder, (std::vector<SequenceGroup>{{1500, 2}}));
  EXPECT_EQ(m.llm, 1125);
}

}  // namespace
}  // namespace mllmsim
