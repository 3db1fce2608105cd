#include "scenarios/data_sets/media_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/world/image_tokens.hpp"

namespace mllmsim::scenarios {
namespace {

// Encoder tokens that packing counts as one tile where pictures have sizes of their own: those of
// 448 x 448 pixels in patches of 14.
constexpr std::int64_t kTokensPerTile = 1024;

}  // namespace

MediaSamples::MediaSamples(std::filesystem::path file, const Model& model, double bytes_per_token)
    : file_(std::move(file)), model_(model), bytes_per_token_(bytes_per_token) {
  data_.media.resize(model.encoders.size());
  for (const Encoder& e : model.encoders) (e.image.rule == Images::audio ? hears_ : sees_) = true;
}

std::int64_t MediaSamples::tokens_of_bytes(double bytes) const {
  return std::llround(std::ceil(std::min(bytes / bytes_per_token_, 2.0 * kMostTokens)));
}

void MediaSamples::add(const Contents& c, std::size_t position, Records& records) {
  if (!c.pictures.empty() && !sees_)
    return records.problem(position, "images", "the model has no encoder for pictures");
  if (!c.seconds.empty() && !hears_)
    return records.problem(position, "seconds",
                           "the model has no encoder with image.rule \"audio\"");
  std::int64_t tokens = c.text, tiles = 0;
  for (std::size_t e = 0; e < model_.encoders.size(); ++e) {
    const data::Media media = media_of(model_.encoders[e], c, tokens);
    tiles += model_.encoders[e].tokens_per_output_token > 0
                 ? (media.tokens + kTokensPerTile - 1) / kTokensPerTile
                 : media.sequences;
    data_.media[e].push_back(media);
  }
  if (tokens < 1 || tokens > kMostTokens)
    return records.problem(
        position, kTextKey,
        fmt::format("expected samples of 1 to {} tokens, found one of {}", kMostTokens, tokens));
  data_.samples.push_back({static_cast<std::int32_t>(tiles), static_cast<std::int32_t>(tokens)});
}

data::DataSet MediaSamples::take() {
  if (data_.samples.empty()) throw UserError(file_.string(), "", "has no samples");
  data_.sets.push_back({file_.stem().string(), 0, data_.samples.size()});
  return std::move(data_);
}

// One token stands for a picture that is seen by cross-attention.
data::Media MediaSamples::media_of(const Encoder& e, const Contents& c,
                                   std::int64_t& tokens) const {
  std::int64_t sequences = 0, length = 0;
  const auto take = [&](const MediaTokens& m) {
    for (const SequenceGroup& g : m.encoder) {
      sequences += g.count;
      length += g.count * g.length;
    }
    tokens += crosses(model_) ? 1 : m.llm;
  };
  if (e.image.rule == Images::audio)
    for (const double s : c.seconds) take(audio_tokens(e, s));
  else
    for (const Picture& p : c.pictures)
      take(image_tokens(e, p.size, p.frames > 0 ? p.frames : frames_of(e, p.seconds)));
  const auto bounded = [](std::int64_t n) {
    return static_cast<std::int32_t>(std::min<std::int64_t>(n, 2'000'000'000));
  };
  return {bounded(sequences), bounded(length)};
}

}  // namespace mllmsim::scenarios
