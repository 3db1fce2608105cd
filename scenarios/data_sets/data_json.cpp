// OmniBal's JSON lengths as a stream of events: a list of objects, of which two numbers matter.
#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>

#include "scenarios/data_sets/data_records.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"

namespace mllmsim::scenarios {
namespace {

namespace json = boost::json;
using Text = json::string_view;
using Error = json::error_code;

// Depth 1 is the list, depth 2 a record; what is deeper belongs to keys nobody reads. The names are
// those Boost.JSON calls.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  explicit Handler(Records& records) : records_(records) {}

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_array_begin(Error&) {
    if (depth_ > 0) unexpected("a list");
    return ++depth_, true;
  }
  bool on_array_end(std::size_t, Error&) { return --depth_, true; }
  bool on_object_begin(Error&) {
    if (depth_ != 1) unexpected("an object");
    if (depth_ == 1) start_record();
    return ++depth_, true;
  }
  bool on_object_end(std::size_t, Error&) {
    if (--depth_ == 1 && !bad_) records_.add(record_, number_);
    return true;
  }
  bool on_key_part(Text, std::size_t, Error&) { return true; }
  bool on_key(Text key, std::size_t size, Error&) {
    if (depth_ != 2) return true;
    const bool whole = key.size() == size;  // ours have no escapes, so they come in one part
    slot_ = whole && key == kTilesKey    ? &record_.tiles
            : whole && key == kTokensKey ? &record_.tokens
                                         : nullptr;
    return true;
  }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return unexpected("a string"); }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t value, Text, Error&) {
    if (depth_ < 2) return unexpected("a number");
    if (depth_ == 2 && slot_) *slot_ = value;
    return true;
  }
  bool on_uint64(std::uint64_t value, Text, Error&) { return unexpected(fmt::format("{}", value)); }
  bool on_double(double value, Text, Error&) { return unexpected(fmt::format("{}", value)); }
  bool on_bool(bool value, Error&) { return unexpected(value ? "true" : "false"); }
  bool on_null(Error&) { return unexpected("null"); }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

 private:
  void start_record() {
    ++number_;
    record_ = {};
    slot_ = nullptr;
    bad_ = false;
  }

  // A value that is wrong where it stands, unless it belongs to a key nobody reads.
  bool unexpected(const std::string& found) {
    if (depth_ == 0) records_.problem(0, "", "expected a list of records, found " + found);
    if (depth_ == 1) {
      start_record();
      records_.problem(number_, "", "expected an object, found " + found);
    }
    if (depth_ == 2 && slot_) {
      records_.problem(number_, slot_ == &record_.tiles ? kTilesKey : kTokensKey,
                       "expected a whole number, found " + found);
      bad_ = true;
    }
    return true;
  }

  Records& records_;
  Record record_;
  std::optional<std::int64_t>* slot_ = nullptr;  // where the next value goes
  std::size_t number_ = 0;                       // of the record, from 1
  int depth_ = 0;
  bool bad_ = false;  // the record has been reported
};

}  // namespace

void read_json_records(const std::filesystem::path& file, std::vector<data::Sample>& out) {
  const std::string text = read_file(file, kLargeFile);
  Records records(file, "record", out);
  json::basic_parser<Handler> parser(json::parse_options{}, records);
  Error error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) throw not_json(text, read, file.string(), error.message());
  records.throw_if_any();
}

}  // namespace mllmsim::scenarios
