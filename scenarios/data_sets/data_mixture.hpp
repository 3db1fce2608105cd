// A data set described instead of listed: sets with a histogram of tiles and a distribution of text
// lengths.
//
//   tokens = min(max_tokens, tiles * tokens_per_tile + text)
//   text   = min(text.max, shift + median * exp(sigma * z)), rounded, z standard normal
//
// Tiles follow InternVL's dynamic resolution: a grid of at most max_tiles tiles that has nearly the
// image's aspect ratio, and a thumbnail if the grid is larger than one tile; with max_tiles = 4
// that is 1, 3 (1x2), 4 (1x3) or 5 (2x2). A text-only sample has one empty tile and no image
// tokens. The same mixture and seed give the same samples on every machine. Text and tiles are
// independent inside a set; a set whose parts differ is written as several entries.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "strategies/data/samples.hpp"

namespace mllmsim::scenarios {

struct TextLength {
  double shift = 0;
  double median = 0;  // of what comes on top of shift
  double sigma = 0;
  std::int64_t max = 0;
};

struct MixtureSet {
  std::string name;  // consecutive entries of one name are parts of one set
  std::int64_t samples = 0;
  std::vector<std::pair<std::int32_t, double>> tiles;  // how many, share; empty: text only
  TextLength text;
};

struct Mixture {
  std::string name;
  std::string description;
  std::int64_t tokens_per_tile = 256;
  std::int64_t max_tokens = 4096;
  std::int64_t max_tiles = 4;       // what to generate
  std::int64_t measured_tiles = 4;  // what the histograms were measured with
  std::vector<MixtureSet> sets;
};

// A path, or a shipped name; `overrides` are "max_tiles=1" and the like. Throws UserError with
// everything wrong.
Mixture read_mixture(const std::string& reference, const std::vector<std::string>& overrides = {});

data::DataSet generate(const Mixture& mixture, std::uint64_t seed);

}  // namespace mllmsim::scenarios
