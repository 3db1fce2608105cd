// The samples of a training set, and groups of them.
//
// A sample is two numbers: image tiles for the encoder and tokens for the LLM, image tokens
// included. Text-only samples carry one empty tile, as InternVL feeds them. Groups are
// micro-batches or packs: lists of sample indices one after another in one array, so that a million
// of them cost two allocations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mllmsim::data {

struct Sample {
  std::int32_t tiles = 0;
  std::int32_t tokens = 0;

  bool operator==(const Sample&) const = default;
};

// A contiguous range of the samples: one file, or one set of a mixture.
struct SampleSet {
  std::string name;
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const SampleSet&) const = default;
};

// What one encoder sees of a sample whose pictures have sizes of their own: so many sequences of
// equal length, the mean of theirs.
struct Media {
  std::int32_t sequences = 0;
  std::int32_t tokens = 0;  // of all of them

  bool operator==(const Media&) const = default;
};

struct DataSet {
  std::vector<Sample> samples;
  std::vector<SampleSet> sets;  // in order, without gaps
  // [encoder][sample]; empty: every encoder sees each sample's tiles, all alike.
  std::vector<std::vector<Media>> media{};
  std::int64_t tokens_per_tile = 0;  // LLM tokens that a tile was counted with; 0: not known
  // [sample]: its one tile is empty. Not known if there are none; then one tile that a sample has
  // too few tokens for is.
  std::vector<char> text_only{};

  bool operator==(const DataSet&) const = default;
};

using SampleIndex = std::uint32_t;

// Group g holds indices[offsets[g]] up to, not including, indices[offsets[g + 1]].
struct SampleGroups {
  std::vector<std::uint32_t> offsets = {0};
  std::vector<SampleIndex> indices;

  std::size_t size() const { return offsets.size() - 1; }
  std::span<const SampleIndex> operator[](std::size_t group) const {
    return {indices.data() + offsets[group], indices.data() + offsets[group + 1]};
  }
  // Ends the group that the indices added since the last end belong to.
  void end_group() { offsets.push_back(static_cast<std::uint32_t>(indices.size())); }

  bool operator==(const SampleGroups&) const = default;
};

// What a group asks of the two halves of the model.
struct Load {
  std::int64_t tiles = 0;
  std::int64_t tokens = 0;

  Load& operator+=(const Sample& s) {
    tiles += s.tiles;
    tokens += s.tokens;
    return *this;
  }
  bool operator==(const Load&) const = default;
};

Load total(std::span<const Sample> samples);
Load total(std::span<const Sample> samples, std::span<const SampleIndex> group);

}  // namespace mllmsim::data
