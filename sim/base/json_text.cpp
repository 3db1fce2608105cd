#include "sim/base/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mllmsim {
namespace {

namespace json = boost::json;

void print(const json::value& value, const std::string& indent, std::string& out) {
  const auto print_all = [&](const auto& items, char open, char close, auto print_item) {
    out += open;
    const char* separator = "\n";
    for (const auto& item : items) {
      out += separator + indent + "  ";
      print_item(item);
      separator = ",\n";
    }
    if (!items.empty()) out += "\n" + indent;
    out += close;
  };
  if (const auto* object = value.if_object()) {
    print_all(*object, '{', '}', [&](const json::key_value_pair& item) {
      out += json::serialize(item.key()) + ": ";
      print(item.value(), indent + "  ", out);
    });
  } else if (const auto* array = value.if_array()) {
    print_all(*array, '[', ']', [&](const json::value& item) { print(item, indent + "  ", out); });
  } else if (const double* number = value.if_double()) {
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string pretty(const json::value& value) {
  std::string out;
  print(value, "", out);
  return out + "\n";
}

}  // namespace mllmsim
