// How an encoder's processor turns a picture, a video or a recording into sequences: its family's
// rule, and the numbers of it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/enum_names.hpp"

namespace mllmsim {

enum class Images : std::uint8_t {
  one,     // resized to one tile: CLIP, SigLIP, Gemma
  tiles,   // a grid of tiles of nearly its aspect ratio, and a thumbnail: InternVL
  anyres,  // one of given grids, and the whole picture as another tile; padding is taken out: LLaVA
  native,  // as large as it is, within limits, as one sequence a frame: Qwen-VL
  audio,   // tiles are spans of a recording: Whisper
};
template <>
struct Names<Images> {
  static constexpr std::array<std::string_view, 5> list{"one", "tiles", "anyres", "native",
                                                        "audio"};
};

struct ImageSize {
  std::int64_t height = 0, width = 0;

  bool operator==(const ImageSize&) const = default;
};

struct ImageRule {
  Images rule = Images::one;
  std::int64_t tile_size = 0;                 // pixels a side
  std::int64_t patch_size = 0;                // pixels a side
  std::int64_t min_tiles = 1, max_tiles = 1;  // of a grid, without its thumbnail
  bool thumbnail = true;
  std::vector<ImageSize> grids;  // in pixels
  std::int64_t most_tiles = 0;   // anyres: features are resized down to this; 0: never
  std::int64_t min_pixels = 0, max_pixels = 0;              // native: of a picture
  std::int64_t video_min_pixels = 0, video_max_pixels = 0;  // of a frame, or all frames of a video
  bool video_pixels_per_frame = false;
  double fps = 2;  // frames taken of a video whose length is given, in seconds
  std::int64_t min_frames = 4, max_frames = 768;
  std::int64_t temporal_patch_size = 1;  // frames that are one
  double seconds_per_tile = 30;

  bool operator==(const ImageRule&) const = default;
};

}  // namespace mllmsim
