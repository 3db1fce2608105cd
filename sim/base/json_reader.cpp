#include "sim/base/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mllmsim {
namespace json = boost::json;

UserError not_json(std::string_view text, std::size_t at, const std::string& file,
                   const std::string& why, int first_line) {
  const std::string_view before = text.substr(0, at);
  const auto line = first_line + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return {fmt::format("{}:{}:{}", file, line, column), "", "not valid JSON: " + why};
}

json::value parse_json(std::string_view text, const std::string& file, int first_line) {
  json::parser parser;
  json::error_code error;
  const std::size_t at = parser.write_some(text, error);
  if (!error && text.find_first_not_of(" \t\r\n", at) == std::string_view::npos)
    return parser.release();
  throw not_json(text, at, file, error ? error.message() : "text after the value", first_line);
}

JsonObject::JsonObject(const json::value& value, std::string file, std::string path)
    : object_(value.if_object()), file_(std::move(file)), path_(std::move(path)) {
  if (!object_) throw UserError(file_, path_, "expected an object");
}

std::string JsonObject::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void JsonObject::fail(std::string_view key, std::string message) const {
  throw UserError(file_, key.empty() ? path_ : path_of(key), std::move(message));
}

const json::value& JsonObject::at(std::string_view key) {
  const json::value* value = object_->if_contains(key);
  if (!value) fail(key, "missing");
  seen_.emplace(key);
  return *value;
}

double JsonObject::number(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_number()) fail(key, "expected a number");
  return value.to_number<double>();
}

double JsonObject::positive(std::string_view key) {
  const double value = number(key);
  if (!(value > 0) || !std::isfinite(value)) fail(key, "expected a number above 0");
  return value;
}

std::int64_t JsonObject::integer(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_int64()) fail(key, "expected a whole number");
  return value.get_int64();
}

std::int64_t JsonObject::count(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_int64() || value.get_int64() < 1) fail(key, "expected a positive whole number");
  return value.get_int64();
}

bool JsonObject::flag(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_bool()) fail(key, "expected true or false");
  return value.get_bool();
}

std::string JsonObject::text(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_string()) fail(key, "expected text");
  return std::string(value.get_string());
}

const json::array& JsonObject::array(std::string_view key) {
  const json::value& value = at(key);
  if (!value.is_array()) fail(key, "expected a list");
  return value.get_array();
}

std::vector<double> JsonObject::numbers(std::string_view key) {
  std::vector<double> out;
  for (const json::value& value : array(key)) {
    if (!value.is_number()) fail(fmt::format("{}[{}]", key, out.size()), "expected a number");
    out.push_back(value.to_number<double>());
  }
  return out;
}

std::vector<std::string> JsonObject::texts(std::string_view key) {
  std::vector<std::string> out;
  for (const json::value& value : array(key)) {
    if (!value.is_string()) fail(fmt::format("{}[{}]", key, out.size()), "expected text");
    out.emplace_back(value.get_string());
  }
  return out;
}

JsonObject JsonObject::object(std::string_view key) { return {at(key), file_, path_of(key)}; }

std::vector<JsonObject> JsonObject::objects(std::string_view key) {
  std::vector<JsonObject> out;
  for (const json::value& value : array(key))
    out.emplace_back(value, file_, fmt::format("{}[{}]", path_of(key), out.size()));
  return out;
}

void JsonObject::finish() const {
  std::vector<Problem> unknown;
  for (const auto& member : *object_)
    if (const std::string key(member.key()); !seen_.contains(key))
      unknown.push_back({file_, path_of(key), "unknown key"});
  if (!unknown.empty()) throw UserError(std::move(unknown));
}

}  // namespace mllmsim
