#include "scenarios/data_sets/data_media.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>

#include "scenarios/data_sets/data_records.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/text.hpp"
#include "sim/world/image_tokens.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kTextKey = "text_tokens";
constexpr std::int64_t kMostPixels = 1'000'000;  // a side
constexpr std::int64_t kMostFrames = 1'000'000;
// Encoder tokens that packing counts as one tile where pictures have sizes of their own: those of
// 448 x 448 pixels in patches of 14.
constexpr std::int64_t kTokensPerTile = 1024;

struct Picture {
  ImageSize size;
  std::int64_t frames = 1;
};

struct Contents {
  std::int64_t text = 0;
  std::vector<Picture> pictures;
  std::vector<double> seconds;
};

class MediaSamples {
 public:
  MediaSamples(const fs::path& file, const Model& model) : file_(file), model_(model) {
    data_.media.resize(model.encoders.size());
    for (const Encoder& e : model.encoders) (e.image.rule == Images::audio ? hears_ : sees_) = true;
  }

  // Problems are told by line.
  void add(const Contents& c, std::size_t line, Records& records) {
    if (!c.pictures.empty() && !sees_)
      return records.problem(line, "images", "the model has no encoder for pictures");
    if (!c.seconds.empty() && !hears_)
      return records.problem(line, "seconds", "the model has no encoder with image.rule \"audio\"");
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
          line, kTextKey,
          fmt::format("expected samples of 1 to {} tokens, found one of {}", kMostTokens, tokens));
    data_.samples.push_back({static_cast<std::int32_t>(tiles), static_cast<std::int32_t>(tokens)});
  }

  data::DataSet take() {
    if (data_.samples.empty()) throw UserError(file_.string(), "", "has no samples");
    data_.sets.push_back({file_.stem().string(), 0, data_.samples.size()});
    return std::move(data_);
  }

 private:
  // One token stands for a picture that is seen by cross-attention.
  data::Media media_of(const Encoder& e, const Contents& c, std::int64_t& tokens) const {
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
      for (const Picture& p : c.pictures) take(image_tokens(e, p.size, p.frames));
    const auto bounded = [](std::int64_t n) {
      return static_cast<std::int32_t>(std::min<std::int64_t>(n, 2'000'000'000));
    };
    return {bounded(sequences), bounded(length)};
  }

  fs::path file_;
  const Model& model_;
  data::DataSet data_;
  bool sees_ = false, hears_ = false;
};

// The values of one line of JSON, or what is wrong with it.
class LineReader {
 public:
  LineReader(const json::object& object, std::size_t line, Records& records)
      : object_(object), line_(line), records_(records) {}

  std::optional<Contents> read() {
    Contents c;
    c.text = number(object_.if_contains(kTextKey), kTextKey, 0, kMostTokens);
    if (object_.contains("height") || object_.contains("width")) add_picture(c, object_, 1);
    each("images", [&](const json::value& v) { add_image(c, v); });
    each("videos", [&](const json::value& v) {
      if (!v.is_object()) return wrong("videos", "{\"frames\", \"height\", \"width\"}", v);
      add_picture(c, v.as_object(),
                  number(v.as_object().if_contains("frames"), "frames", 1, kMostFrames));
    });
    each("seconds", [&](const json::value& v) {
      if (!v.is_number() || !(v.to_number<double>() > 0) || v.to_number<double>() > 1e6)
        return wrong("seconds", "a number above 0", v);
      c.seconds.push_back(v.to_number<double>());
    });
    if (bad_) return std::nullopt;
    return c;
  }

 private:
  template <class Use>
  void each(const char* key, Use use) {
    const json::value* value = object_.if_contains(key);
    if (!value || value->is_null()) return;
    if (value->is_array())
      for (const json::value& v : value->as_array()) use(v);
    else if (value->is_number())
      use(*value);
    else
      wrong(key, "a list", *value);
  }

  void add_image(Contents& c, const json::value& v) {
    if (v.is_object()) return add_picture(c, v.as_object(), 1);
    if (!v.is_array() || v.as_array().size() != 2) return wrong("images", "[height, width]", v);
    const json::array& size = v.as_array();
    c.pictures.push_back(
        {{number(&size[0], "images", 1, kMostPixels), number(&size[1], "images", 1, kMostPixels)},
         1});
  }

  void add_picture(Contents& c, const json::object& object, std::int64_t frames) {
    const std::int64_t height = number(object.if_contains("height"), "height", 1, kMostPixels);
    const std::int64_t width = number(object.if_contains("width"), "width", 1, kMostPixels);
    c.pictures.push_back({{height, width}, frames});
  }

  std::int64_t number(const json::value* value, const char* key, std::int64_t least,
                      std::int64_t most) {
    if (value && value->is_int64() && value->as_int64() >= least && value->as_int64() <= most)
      return value->as_int64();
    if (!value)
      records_.problem(line_, key, "missing");
    else
      wrong(key, fmt::format("a whole number from {} to {}", least, most).c_str(), *value);
    bad_ = true;
    return least;
  }

  void wrong(const char* key, const char* expected, const json::value& found) {
    records_.problem(
        line_, key, fmt::format("expected {}, found {}", expected, line_json(found).substr(0, 60)));
    bad_ = true;
  }

  const json::object& object_;
  std::size_t line_;
  Records& records_;
  bool bad_ = false;
};

void read_jsonl(const std::string& text, const fs::path& file, MediaSamples& samples,
                Records& records) {
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row(text.data() + begin, end - begin);
    begin = end + 1;
    ++line;
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json::value value =
        parse_json(std::string(row), fmt::format("{}:{}", file.string(), line));
    if (!value.is_object()) {
      records.problem(line, "", "expected a JSON object");
      continue;
    }
    if (const auto contents = LineReader(value.as_object(), line, records).read())
      samples.add(*contents, line, records);
  }
}

void read_csv(const std::string& text, const fs::path& file, MediaSamples& samples,
              Records& records) {
  CsvReader reader(text, file.string());
  std::vector<CsvField> header, cells;
  reader.next(header);
  const auto cell = [&](const char* name) -> std::string_view {
    for (std::size_t c = 0; c < header.size() && c < cells.size(); ++c)
      if (header[c].text == name) return cells[c].text;
    return {};
  };
  while (reader.next(cells)) {
    const std::size_t line = cells.front().line;
    bool bad = false;
    const auto value = [&](const char* name, double most) {
      const std::string_view found = cell(name);
      if (found.empty()) return 0.0;
      const auto number = to_number<double>(found);
      if (number && *number >= 0 && *number <= most) return *number;
      records.problem(
          line, name,
          fmt::format("expected a number from 0 to {}, found \"{}\"", most, found.substr(0, 60)));
      bad = true;
      return 0.0;
    };
    const auto whole = [&](const char* name, std::int64_t most) {
      return std::llround(value(name, static_cast<double>(most)));
    };
    Contents c;
    c.text = whole(kTextKey, kMostTokens);
    const std::int64_t height = whole("height", kMostPixels), width = whole("width", kMostPixels);
    const std::int64_t frames = std::max<std::int64_t>(1, whole("frames", kMostFrames));
    if ((height == 0) != (width == 0))
      records.problem(line, height == 0 ? "height" : "width", "missing beside the other");
    else if (height > 0)
      c.pictures.push_back({{height, width}, frames});
    if (const double seconds = value("seconds", 1e6); seconds > 0) c.seconds.push_back(seconds);
    if (!bad) samples.add(c, line, records);
  }
}

}  // namespace

bool is_media_file(const fs::path& file) {
  if (file.extension() == ".jsonl") return true;
  std::error_code error;
  if (file.extension() != ".csv" || !fs::is_regular_file(file, error)) return false;
  const std::string text = read_file(file, kLargeFile);
  CsvReader reader(text, file.string());
  std::vector<CsvField> header;
  reader.next(header);
  return std::any_of(header.begin(), header.end(),
                     [](const CsvField& f) { return f.text == kTextKey; });
}

data::DataSet read_media(const fs::path& file, const Model& model) {
  std::error_code error;
  if (!fs::exists(file, error)) throw UserError(file.string(), "", "no such file");
  const std::string text = read_file(file, kLargeFile);
  MediaSamples samples(file, model);
  std::vector<data::Sample> unused;
  Records records(file, "line", unused);
  if (file.extension() == ".jsonl")
    read_jsonl(text, file, samples, records);
  else
    read_csv(text, file, samples, records);
  records.throw_if_any();
  return samples.take();
}

}  // namespace mllmsim::scenarios
