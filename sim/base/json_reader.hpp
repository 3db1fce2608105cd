// Strict reading of JSON: every key is asked for by name and type, and a key nobody asked for is an
// error. Problems are UserErrors with the file and the path of the value ("gemm.tiles[2].rate").
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {

// Throws UserError with file:line:column where the text stops being JSON.
// `first_line` is where in the file the text begins.
boost::json::value parse_json(std::string_view text, const std::string& file, int first_line = 1);
// That error: `at` is how much of the text was JSON.
UserError not_json(std::string_view text, std::size_t at, const std::string& file,
                   const std::string& why, int first_line = 1);

// A view of one object; the parsed document must outlive it. Call finish() when all keys are read.
class JsonObject {
 public:
  JsonObject(const boost::json::value& value, std::string file, std::string path = "");

  bool has(std::string_view key) const { return object_->contains(key); }
  double number(std::string_view key);
  double positive(std::string_view key);
  std::int64_t integer(std::string_view key);
  std::int64_t count(std::string_view key);
  bool flag(std::string_view key);
  std::string text(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  template <NamedEnum Enum>
  Enum choice(std::string_view key) {
    const std::optional<Enum> found = named<Enum>(text(key));
    if (!found) fail(key, "expected " + choices<Enum>());
    return *found;
  }
  JsonObject object(std::string_view key);
  std::vector<JsonObject> objects(std::string_view key);

  void finish() const;
  [[noreturn]] void fail(std::string_view key, std::string message) const;

 private:
  const boost::json::value& at(std::string_view key);
  const boost::json::array& array(std::string_view key);
  std::string path_of(std::string_view key) const;

  const boost::json::object* object_;
  std::string file_, path_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace mllmsim
