// JSON that others write, of which little is promised (traces): these give nothing rather than
// fail.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mllmsim::loose {

inline const boost::json::value* find(const boost::json::value& object, std::string_view key) {
  const boost::json::object* fields = object.if_object();
  return fields ? fields->if_contains(key) : nullptr;
}

inline std::optional<double> number(const boost::json::value& object, std::string_view key) {
  const boost::json::value* value = find(object, key);
  if (!value || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

inline std::optional<std::int64_t> integer(const boost::json::value& object, std::string_view key) {
  const std::optional<double> value = number(object, key);
  if (!value || *value < -9e15 || *value > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

inline std::string_view text(const boost::json::value& object, std::string_view key) {
  const boost::json::value* value = find(object, key);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace mllmsim::loose
