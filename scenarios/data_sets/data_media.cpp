#include "scenarios/data_sets/data_media.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <optional>

#include "scenarios/data_sets/media_samples.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::map<std::string, MediaReader>& media_formats() {
  static std::map<std::string, MediaReader> all;
  return all;
}

// Bytes of what a conversation says: LLaVA's and InternVL's {"from", "value"}, chat templates'
// {"role", "content"}, whose content may be a list of {"type": "text", "text"}.
double bytes_of_text(const json::value& v) {
  if (v.is_string()) return static_cast<double>(v.as_string().size());
  double bytes = 0;
  if (v.is_array())
    for (const json::value& part : v.as_array()) bytes += bytes_of_text(part);
  if (v.is_object())
    for (const char* key : {"value", "content", "text"})
      if (const json::value* part = v.as_object().if_contains(key)) bytes += bytes_of_text(*part);
  return bytes;
}

// The values of one line of JSON, or what is wrong with it.
class LineReader {
 public:
  LineReader(const json::object& object, std::size_t line, const MediaSamples& samples,
             Records& records)
      : object_(object), line_(line), samples_(samples), records_(records) {}

  std::optional<Contents> read() {
    Contents c;
    c.text = text_tokens();
    if (object_.contains("height") || object_.contains("width")) add_picture(c, object_);
    add_lists(c);
    each("images", [&](const json::value& v) { add_image(c, v); });
    each("videos", [&](const json::value& v) {
      if (!v.is_object())
        return wrong("videos", "{\"frames\" or \"seconds\", \"height\", \"width\"}", v);
      add_video(c, v.as_object());
    });
    each("seconds", [&](const json::value& v) { c.seconds.push_back(seconds(v)); });
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

  // Stated, or as many as the text's bytes make.
  std::int64_t text_tokens() {
    if (object_.contains(kTextKey))
      return number(object_.if_contains(kTextKey), kTextKey, 0, kMostTokens);
    for (const char* key : {"conversations", "messages", "text"})
      if (const json::value* said = object_.if_contains(key))
        return samples_.tokens_of_bytes(bytes_of_text(*said));
    return number(nullptr, kTextKey, 0, kMostTokens);
  }

  double seconds(const json::value& v) {
    if (v.is_number() && v.to_number<double>() > 0 && v.to_number<double>() <= kMostSeconds)
      return v.to_number<double>();
    wrong("seconds", "a number above 0", v);
    return 1;
  }

  // InternVL's: a list each, for several pictures.
  void add_lists(Contents& c) {
    const json::value* heights = object_.if_contains("height_list");
    const json::value* widths = object_.if_contains("width_list");
    if (!heights && !widths) return;
    if (!heights || !widths || !heights->is_array() || !widths->is_array() ||
        heights->as_array().size() != widths->as_array().size())
      return wrong("height_list", "a list as long as width_list", heights ? *heights : *widths);
    for (std::size_t i = 0; i < heights->as_array().size(); ++i)
      c.pictures.push_back({{number(&heights->as_array()[i], "height_list", 1, kMostPixels),
                             number(&widths->as_array()[i], "width_list", 1, kMostPixels)}});
  }

  void add_video(Contents& c, const json::object& video) {
    add_picture(c, video);
    Picture& picture = c.pictures.back();
    const json::value* length = video.if_contains("seconds");
    if (length && !video.contains("frames")) {
      picture.frames = 0;
      picture.seconds = seconds(*length);
    } else {
      picture.frames = number(video.if_contains("frames"), "frames", 1, kMostFrames);
    }
  }

  void add_image(Contents& c, const json::value& v) {
    if (v.is_object()) return add_picture(c, v.as_object());
    if (!v.is_array() || v.as_array().size() != 2) return wrong("images", "[height, width]", v);
    const json::array& size = v.as_array();
    c.pictures.push_back(
        {{number(&size[0], "images", 1, kMostPixels), number(&size[1], "images", 1, kMostPixels)}});
  }

  void add_picture(Contents& c, const json::object& object) {
    const std::int64_t height = number(object.if_contains("height"), "height", 1, kMostPixels);
    const std::int64_t width = number(object.if_contains("width"), "width", 1, kMostPixels);
    c.pictures.push_back({{height, width}});
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
  const MediaSamples& samples_;
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
    if (const auto contents = LineReader(value.as_object(), line, samples, records).read())
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
    if (const double seconds = value("seconds", kMostSeconds); seconds > 0)
      c.seconds.push_back(seconds);
    if (!bad) samples.add(c, line, records);
  }
}

}  // namespace

bool is_media_file(const fs::path& file) {
  if (file.extension() == ".jsonl" || media_formats().contains(file.extension().string()))
    return true;
  std::error_code error;
  if (file.extension() != ".csv" || !fs::is_regular_file(file, error)) return false;
  const std::string text = read_file(file, kLargeFile);
  CsvReader reader(text, file.string());
  std::vector<CsvField> header;
  reader.next(header);
  return std::any_of(header.begin(), header.end(),
                     [](const CsvField& f) { return f.text == kTextKey; });
}

void register_media_format(std::string extension, MediaReader reader) {
  media_formats().insert_or_assign(std::move(extension), reader);
}

data::DataSet read_media(const fs::path& file, const Model& model, double bytes_per_token) {
  std::error_code error;
  if (!fs::exists(file, error)) throw UserError(file.string(), "", "no such file");
  MediaSamples samples(file, model, bytes_per_token);
  std::vector<data::Sample> unused;
  const auto format = media_formats().find(file.extension().string());
  Records records(file, format == media_formats().end() ? "line" : "sample", unused);
  if (format != media_formats().end())
    format->second(file, samples, records);
  else if (file.extension() == ".jsonl")
    read_jsonl(read_file(file, kLargeFile), file, samples, records);
  else
    read_csv(read_file(file, kLargeFile), file, samples, records);
  records.throw_if_any();
  return samples.take();
}

}  // namespace mllmsim::scenarios
