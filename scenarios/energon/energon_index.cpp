#include "scenarios/energon/energon_index.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "scenarios/data_sets/data_media.hpp"
#include "sim/base/json_reader.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kText[] = {"txt", "text", "json", "caption", "md"};
constexpr const char* kMedia[] = {"jpg",  "jpeg", "png", "webp", "gif", "bmp",  "tif",
                                  "tiff", "mp4",  "mkv", "avi",  "mov", "webm", "wav",
                                  "mp3",  "flac", "ogg", "m4a",  "aac"};

template <std::size_t n>
bool is_one_of(const std::string& word, const char* const (&words)[n]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// A database opened to be read, and one query of it.
class Query {
 public:
  explicit Query(const fs::path& file) : file_(file.string()) {
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(file_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
    db_.reset(db);
    check(code);
  }

  void ask(const char* text) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(db_.get(), text, -1, &statement, nullptr);
    statement_.reset(statement);
    check(code);
  }

  bool next() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) check(code);
    return false;
  }

  std::string text(int column) const {
    const auto* value = sqlite3_column_text(statement_.get(), column);
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return value ? std::string(reinterpret_cast<const char*>(value), static_cast<std::size_t>(size))
                 : std::string();
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_.get(), column); }

 private:
  void check(int code) const {
    if (code != SQLITE_OK)
      throw UserError(file_, "", fmt::format("not an index of Energon: {}", sqlite3_errstr(code)));
  }

  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::string file_;
  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<sqlite3_stmt, Close> statement_;
};

std::vector<std::string> tables_of(Query& query) {
  query.ask("select name from sqlite_master where type = 'table'");
  std::vector<std::string> names;
  while (query.next()) names.push_back(query.text(0));
  return names;
}

struct Part {
  std::string key, kind, json;  // "0001.jpg", "image"
  std::int64_t bytes = 0;
  std::size_t sample = 0;  // from 1
};

class IndexReader {
 public:
  IndexReader(const fs::path& file, MediaSamples& samples, Records& records)
      : file_(file.string()), samples_(samples), records_(records) {}

  void part(const Part& p) {
    if (p.sample != sample_) finish();
    sample_ = p.sample;
    const std::string extension = p.key.substr(p.key.find_last_of('.') + 1);
    if (p.kind == "image" || p.kind == "av")
      media(p);
    else if (is_one_of(extension, kText))
      text_bytes_ += static_cast<double>(std::max<std::int64_t>(0, p.bytes));
    else if (is_one_of(extension, kMedia))
      problem(p,
              "has no size in the index; `energon prepare --media-metadata-by-extension` "
              "enters it");
  }

  // The sample whose parts have come.
  void finish() {
    if (sample_ > 0 && !bad_) {
      contents_.text = samples_.tokens_of_bytes(text_bytes_);
      samples_.add(contents_, sample_, records_);
    }
    contents_ = {};
    text_bytes_ = 0;
    bad_ = false;
  }

 private:
  void media(const Part& p) {
    const json::value value = parse_json(p.json, file_ + ": " + p.key.substr(0, 60));
    if (!value.is_object()) return problem(p, "expected a JSON object");
    const json::object& object = value.as_object();
    if (p.kind == "image") return picture(p, object, "height", "width", 0);
    const double video = real(object, "video_duration"), sound = real(object, "audio_duration");
    if (video > 0) picture(p, object, "video_height", "video_width", video);
    // The sound of a video is passed over by a model that does not hear.
    if (sound > 0 && (samples_.hears() || video <= 0)) contents_.seconds.push_back(sound);
    if (video <= 0 && sound <= 0) problem(p, "expected a video_duration or audio_duration");
  }

  void picture(const Part& p, const json::object& object, const char* height_key,
               const char* width_key, double seconds) {
    const double height = real(object, height_key), width = real(object, width_key);
    const double most = static_cast<double>(kMostPixels);
    if (!(height >= 1 && height <= most && width >= 1 && width <= most))
      return problem(
          p, fmt::format("expected {} and {} from 1 to {}", height_key, width_key, kMostPixels));
    const ImageSize size{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width)};
    contents_.pictures.push_back({size, seconds > 0 ? 0 : 1, std::min(seconds, kMostSeconds)});
  }

  static double real(const json::object& object, const char* key) {
    const json::value* value = object.if_contains(key);
    return value && value->is_number() ? value->to_number<double>() : 0;
  }

  void problem(const Part& p, const std::string& message) {
    records_.problem(p.sample, p.key.substr(0, 60), message);
    bad_ = true;
  }

  std::string file_;
  MediaSamples& samples_;
  Records& records_;
  Contents contents_;
  double text_bytes_ = 0;
  std::size_t sample_ = 0;
  bool bad_ = false;
};

void read_index(const fs::path& file, MediaSamples& samples, Records& records) {
  Query query(file);
  const std::vector<std::string> tables = tables_of(query);
  const auto has = [&](const char* name) {
    return std::find(tables.begin(), tables.end(), name) != tables.end();
  };
  for (const char* name : {"samples", "sample_parts"})
    if (!has(name)) throw UserError(file.string(), name, "no such table: not an index of Energon");
  const std::string joined =
      has("media_metadata") ? " left join media_metadata m on m.entry_key = s.sample_key || '.' || "
                              "p.part_name"
                            : "";
  query.ask(("select s.tar_file_id, s.sample_index, s.sample_key || '.' || p.part_name, "
             "p.content_byte_size" +
             std::string(joined.empty() ? ", '', ''" : ", m.metadata_type, m.metadata_json") +
             " from samples s join sample_parts p on p.tar_file_id = s.tar_file_id and "
             "p.sample_index = s.sample_index" +
             joined + " order by s.tar_file_id, s.sample_index, p.content_byte_offset")
                .c_str());
  IndexReader reader(file, samples, records);
  std::optional<std::pair<std::int64_t, std::int64_t>> last;
  std::size_t count = 0;
  while (query.next()) {
    const std::pair<std::int64_t, std::int64_t> here{query.number(0), query.number(1)};
    if (last != here) ++count;
    last = here;
    reader.part({query.text(2), query.text(4), query.text(5), query.number(3), count});
  }
  reader.finish();
}

}  // namespace

void register_energon_index() { register_media_format(".sqlite", read_index); }

}  // namespace mllmsim::scenarios
