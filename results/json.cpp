#include "results/json.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

#include "results/run_fields.hpp"

namespace mllmsim {
namespace {

namespace json = boost::json;

struct ToObject {
  json::object& object;

  template <class T>
  void field(std::string_view name, const T& value) {
    object[name] = plain(value);
  }
  template <class T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }
};

template <class Row>
json::array to_array(const std::vector<Row>& rows) {
  json::array array;
  for (const Row& row : rows) {
    json::object object;
    ToObject visit{object};
    each_field(row, visit);
    array.push_back(std::move(object));
  }
  return array;
}

json::object to_object(const RunResult& run) {
  json::object object;
  ToObject visit{object};
  each_key(run, visit);
  each_field(run, visit);
  object["plan"] = to_array(run.facts);
  object["stages"] = to_array(run.stages);
  object["steps"] = to_array(run.steps);
  return object;
}

// Boost.JSON prints one line and 1.25E1 for 12.5; people look at this too.
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

std::string to_json(std::span<const RunResult> runs) {
  json::array array;
  for (const RunResult& run : runs) array.push_back(to_object(run));
  return json_text(json::object{{"runs", std::move(array)}});
}

std::string json_text(const json::value& value) {
  std::string out;
  print(value, "", out);
  return out + "\n";
}

}  // namespace mllmsim
