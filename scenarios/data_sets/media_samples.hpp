// What samples hold, and the samples it makes for a model's encoders: shared by all formats of
// media records (data_media.hpp).
#pragma once

#include <filesystem>
#include <vector>

#include "scenarios/data_sets/data_records.hpp"
#include "sim/world/model.hpp"

namespace mllmsim::scenarios {

inline constexpr const char* kTextKey = "text_tokens";
inline constexpr std::int64_t kMostPixels = 1'000'000;  // a side
inline constexpr std::int64_t kMostFrames = 1'000'000;
inline constexpr double kMostSeconds = 1e6;

struct Picture {
  ImageSize size;
  std::int64_t frames = 1;  // 0: as many as the encoder takes of so many seconds
  double seconds = 0;
};

struct Contents {
  std::int64_t text = 0;
  std::vector<Picture> pictures;
  std::vector<double> seconds;  // of recordings
};

class MediaSamples {
 public:
  MediaSamples(std::filesystem::path file, const Model& model, double bytes_per_token);

  bool hears() const { return hears_; }
  // Tokens of a text of which only the size is known.
  std::int64_t tokens_of_bytes(double bytes) const;

  // Problems are told by line or record.
  void add(const Contents& contents, std::size_t position, Records& records);
  data::DataSet take();

 private:
  data::Media media_of(const Encoder& encoder, const Contents& contents,
                       std::int64_t& tokens) const;

  std::filesystem::path file_;
  const Model& model_;
  double bytes_per_token_;
  data::DataSet data_;
  bool sees_ = false, hears_ = false;
};

}  // namespace mllmsim::scenarios
