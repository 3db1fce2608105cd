#include "sim/world/image_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mllmsim {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

// Python's round(): halves go to the even neighbour.
std::int64_t round_half_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

// get_optimal_tiled_canvas of InternVL's processor: grids by their number of tiles.
std::int64_t grid_tiles(const ImageRule& rule, ImageSize size) {
  const double aspect = real(size.width) / real(size.height);
  const double area = real(size.width) * real(size.height);
  const double tile = real(rule.tile_size) * real(rule.tile_size);
  double nearest = std::numeric_limits<double>::infinity();
  std::int64_t best = 1;
  for (std::int64_t n = rule.min_tiles; n <= rule.max_tiles; ++n)
    for (std::int64_t columns = 1; columns <= n; ++columns) {
      if (n % columns != 0) continue;
      const double distance = std::abs(aspect - real(columns) / real(n / columns));
      const bool large_enough = area > 0.5 * tile * real(n);
      if (distance < nearest || (distance == nearest && large_enough)) best = n;
      nearest = std::min(nearest, distance);
    }
  return best;
}

// select_best_resolution: the grid that keeps most of the picture, then the one that wastes least.
ImageSize best_grid(const std::vector<ImageSize>& grids, ImageSize size) {
  ImageSize best;
  std::int64_t most = -1, least_waste = 0;
  for (const ImageSize& g : grids) {
    const double scale =
        std::min(real(g.width) / real(size.width), real(g.height) / real(size.height));
    const auto kept = std::min(static_cast<std::int64_t>(real(size.width) * scale) *
                                   static_cast<std::int64_t>(real(size.height) * scale),
                               size.width * size.height);
    const std::int64_t waste = g.width * g.height - kept;
    if (kept < most || (kept == most && waste >= least_waste)) continue;
    most = kept;
    least_waste = waste;
    best = g;
  }
  return best;
}

// _get_unpadded_features of LLaVA-NeXT's and LLaVA-OneVision's processors: the grid's features
// without those of padding, one more a row for its end; resized down if they are too many.
std::int64_t anyres_features(const ImageRule& rule, ImageSize size, ImageSize grid) {
  const std::int64_t side = rule.tile_size / rule.patch_size;
  std::int64_t rows = side * (grid.height / rule.tile_size);
  std::int64_t columns = side * (grid.width / rule.tile_size);
  const auto kept = [](std::int64_t length, double scale) {
    return static_cast<std::int64_t>(std::round(real(length) * scale * 1e7) / 1e7);
  };
  if (real(size.width) / real(size.height) > real(columns) / real(rows))
    rows -= (rows - kept(size.height, real(columns) / real(size.width))) / 2 * 2;
  else
    columns -= (columns - kept(size.width, real(rows) / real(size.height))) / 2 * 2;
  const double ratio =
      rule.most_tiles == 0
          ? 0
          : std::sqrt(real(rows) * real(columns) / (real(rule.most_tiles) * real(side * side)));
  if (ratio > 1.1) {
    rows = static_cast<std::int64_t>(std::floor(real(rows) / ratio));
    columns = static_cast<std::int64_t>(std::floor(real(columns) / ratio));
  }
  return rows * columns + rows;
}

struct PixelLimits {
  std::int64_t least, most;
};

// smart_resize of Qwen2-VL's and, with the frames of a video in the product, Qwen3-VL's processors.
ImageSize smart_resize(const PixelLimits& limits, ImageSize size, std::int64_t frames,
                       std::int64_t factor) {
  const double f = real(factor), height = real(size.height), width = real(size.width);
  std::int64_t h = std::max<std::int64_t>(1, round_half_even(height / f)) * factor;
  std::int64_t w = std::max<std::int64_t>(1, round_half_even(width / f)) * factor;
  const double pixels = height * width * real(frames);
  if (limits.most > 0 && h * w * frames > limits.most) {
    const double beta = std::sqrt(pixels / real(limits.most));
    h = std::max(factor, static_cast<std::int64_t>(std::floor(height / beta / f)) * factor);
    w = std::max(factor, static_cast<std::int64_t>(std::floor(width / beta / f)) * factor);
  } else if (h * w * frames < limits.least) {
    const double beta = std::sqrt(real(limits.least) / pixels);
    h = static_cast<std::int64_t>(std::ceil(height * beta / f)) * factor;
    w = static_cast<std::int64_t>(std::ceil(width * beta / f)) * factor;
  }
  return {h, w};
}

MediaTokens native_tokens(const Encoder& e, ImageSize size, std::int64_t frames) {
  const ImageRule& rule = e.image;
  const std::int64_t patch = rule.patch_size;
  const std::int64_t merge = std::llround(std::sqrt(real(e.tokens_per_output_token)));
  const std::int64_t times =
      std::max<std::int64_t>(1, (frames + rule.temporal_patch_size - 1) / rule.temporal_patch_size);
  const bool video = frames > 1 && rule.video_max_pixels > 0;
  const PixelLimits limits = video ? PixelLimits{rule.video_min_pixels, rule.video_max_pixels}
                                   : PixelLimits{rule.min_pixels, rule.max_pixels};
  const ImageSize resized =
      smart_resize(limits, size, video && rule.video_pixels_per_frame ? 1 : frames, patch * merge);
  const std::int64_t length = (resized.height / patch) * (resized.width / patch);
  return {{{length, times}}, image_tokens_of(e, times, times * length)};
}

}  // namespace

MediaTokens image_tokens(const Encoder& e, ImageSize size, std::int64_t frames) {
  const ImageRule& rule = e.image;
  if (rule.rule == Images::native) return native_tokens(e, size, frames);
  const auto tiles_and_tokens = [&](std::int64_t tiles, std::int64_t tokens) {
    return MediaTokens{{{e.tokens_per_tile, tiles * frames}}, tokens * frames};
  };
  // A frame of a video is one tile.
  if (rule.rule == Images::tiles && frames == 1) {
    const std::int64_t grid = grid_tiles(rule, size);
    const std::int64_t tiles = grid + (rule.thumbnail && grid > 1 ? 1 : 0);
    return tiles_and_tokens(tiles, tiles * e.output_tokens_per_tile);
  }
  if (rule.rule == Images::anyres && frames == 1) {
    const ImageSize grid = best_grid(rule.grids, size);
    const std::int64_t tiles = (grid.height / rule.tile_size) * (grid.width / rule.tile_size);
    return tiles_and_tokens(1 + tiles,
                            e.output_tokens_per_tile + anyres_features(rule, size, grid));
  }
  return tiles_and_tokens(1, e.output_tokens_per_tile);
}

std::int64_t frames_of(const Encoder& e, double seconds) {
  const ImageRule& rule = e.image;
  const double taken = std::clamp(std::floor(seconds * rule.fps), real(rule.min_frames),
                                  real(std::max(rule.min_frames, rule.max_frames)));
  const auto step = std::max<std::int64_t>(1, rule.temporal_patch_size);
  return std::max(step, static_cast<std::int64_t>(taken) / step * step);
}

MediaTokens audio_tokens(const Encoder& e, double seconds) {
  const double spans = seconds / e.image.seconds_per_tile;
  return {{{e.tokens_per_tile, static_cast<std::int64_t>(std::ceil(spans))}},
          static_cast<std::int64_t>(std::ceil(spans * real(e.output_tokens_per_tile)))};
}

}  // namespace mllmsim
