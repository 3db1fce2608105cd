#include "scenarios/tree/toml_parse.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "sim/base/utf8.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr std::ptrdiff_t kMostDotsInLine = 1000;

Position position_of(const toml::source_region& region, const SharedText& file) {
  return {file, region.begin.line, region.begin.column};
}

Node converted(const toml::node& from, const SharedText& file) {
  Node node;
  node.position = position_of(from.source(), file);
  if (const auto* table = from.as_table()) {
    for (const auto& [key, value] : *table)
      node.as<Node::Table>().emplace(std::string(key.str()), converted(value, file));
  } else if (const auto* array = from.as_array()) {
    node.value = Node::Array{};
    for (const toml::node& value : *array) node.as<Node::Array>().push_back(converted(value, file));
  } else if (const auto* text = from.as_string()) {
    node.value = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.value = integer->get();
  } else if (const auto* real = from.as_floating_point()) {
    node.value = real->get();
  } else if (const auto* boolean = from.as_boolean()) {
    node.value = boolean->get();
  } else {
    throw UserError(node.position.text(), "", "dates and times have no use here");
  }
  return node;
}

void place(Node& node, const Position& position) {
  node.position = position;
  if (node.is<Node::Table>())
    for (auto& [key, value] : node.as<Node::Table>()) place(value, position);
  if (node.is<Node::Array>())
    for (Node& value : node.as<Node::Array>()) place(value, position);
}

// toml++ 3.3 limits how deep values nest, but not dotted keys: it would run out of stack.
void refuse_deep_keys(std::string_view text, const std::string& file) {
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::string_view written = take_line(text);
    if (std::count(written.begin(), written.end(), '.') > kMostDotsInLine)
      throw UserError(Position{file, line, 1}.text(), "", "keys are nested too deeply");
  }
}

std::string_view trimmed_start(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& file) {
  refuse_deep_keys(text, file);
  try {
    return converted(toml::parse(text, file), file);
  } catch (const toml::parse_error& e) {
    const bool json = trimmed_start(text).starts_with('{');
    throw UserError(
        position_of(e.source(), file).text(), "",
        fmt::format("not valid TOML{}: {}", json ? ", but perhaps JSON" : "", e.description()));
  }
}

Node parse_toml_file(const std::filesystem::path& file) {
  return parse_toml(read_file(file, kSmallFile), file.string());
}

namespace {

// Most values of overrides are: they need no parser.
bool is_whole_number(std::string_view text) {
  constexpr std::size_t kDigits = 18;
  return !text.empty() && text.size() <= kDigits && (text[0] != '0' || text.size() == 1) &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Node parse_value(const std::string& text, const Position& position) {
  if (is_whole_number(text)) return {*to_number<std::int64_t>(text), position};
  if (!is_utf8(text)) throw UserError(position.text(), "", "is not UTF-8");
  Node node;
  node.value = text;
  try {
    // Only a single value: "1\nb = 2" is not one.
    const Node parsed = parse_toml("v = " + text, "");
    if (parsed.as<Node::Table>().size() == 1) node = *parsed.find("v");
  } catch (const UserError&) {
    // Not TOML: the string it is.
  }
  place(node, position);
  return node;
}

}  // namespace mllmsim::scenarios
