#include "sim/base/json_writer.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace mllmsim {
namespace {

namespace json = boost::json;
constexpr std::size_t kWidth = 100;

void write_line(std::string& out, const json::value& value, int digits) {
  if (const json::object* object = value.if_object()) {
    const char* separator = "{";
    for (const auto& member : *object) {
      out += separator + json_text(member.key()) + ": ";
      write_line(out, member.value(), digits);
      separator = ", ";
    }
    out += object->empty() ? "{}" : "}";
  } else if (const json::array* array = value.if_array()) {
    const char* separator = "[";
    for (const json::value& item : *array) {
      out += separator;
      write_line(out, item, digits);
      separator = ", ";
    }
    out += array->empty() ? "[]" : "]";
  } else if (const double* number = value.if_double()) {
    out += json_number(*number, digits);
  } else {
    out += json::serialize(value);
  }
}

void write(std::string& out, const json::value& value, int digits, std::size_t indent,
           std::size_t used) {
  const std::string line = line_json(value, digits);
  if (used + line.size() < kWidth || !value.is_structured()) {
    out += line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  const char* separator = "\n";
  if (const json::object* object = value.if_object()) {
    out += "{";
    for (const auto& member : *object) {
      const std::string key = json_text(member.key()) + ": ";
      out += separator + margin + key;
      write(out, member.value(), digits, indent + 2, indent + 2 + key.size());
      separator = ",\n";
    }
    out += "\n" + std::string(indent, ' ') + "}";
    return;
  }
  out += "[";
  std::size_t column = kWidth;  // numbers fill lines; everything else has a line each
  for (const json::value& item : value.get_array()) {
    const std::string text = item.is_number() ? line_json(item, digits) : "";
    const bool fits = item.is_number() && column + text.size() + 2 < kWidth;
    if (*separator == ',') out += fits ? ", " : ",";
    if (!fits) out += "\n" + margin;
    column = fits ? column + text.size() + 2 : margin.size() + text.size();
    if (item.is_number())
      out += text;
    else
      write(out, item, digits, indent + 2, indent + 2);
    separator = ",";
  }
  out += "\n" + std::string(indent, ' ') + "]";
}

}  // namespace

std::string json_text(std::string_view text) { return json::serialize(json::string(text)); }

std::string json_number(double value, int digits) {
  if (!std::isfinite(value)) return "null";
  return digits == kAllDigits ? fmt::format("{}", value) : fmt::format("{:.{}g}", value, digits);
}

std::string line_json(const json::value& value, int digits) {
  std::string out;
  write_line(out, value, digits);
  return out;
}

std::string pretty_json(const json::value& value, int digits) {
  std::string out;
  write(out, value, digits, 0, 0);
  return out + "\n";
}

}  // namespace mllmsim
