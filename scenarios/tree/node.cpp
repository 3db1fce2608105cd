#include "scenarios/tree/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(byte));
    else
      out += c;
  }
  return out + '"';
}

std::string key_text(std::string_view key) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), bare) ? std::string(key)
                                                                   : in_quotes(key);
}

std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool is_array_of_tables(const Node& node) {
  if (!node.is<Node::Array>() || node.as<Node::Array>().empty()) return false;
  const auto& array = node.as<Node::Array>();
  return std::all_of(array.begin(), array.end(), [](const Node& n) { return n.is<Node::Table>(); });
}

// A table's own values first, then its tables under their headers, as TOML wants.
void write_table(const Node::Table& table, const std::string& path, std::string& out) {
  for (const auto& [key, child] : table)
    if (!child.is<Node::Table>() && !is_array_of_tables(child))
      out += key_text(key) + " = " + to_inline_toml(child) + "\n";
  for (const auto& [key, child] : table) {
    const std::string name = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (child.is<Node::Table>()) {
      out += fmt::format("\n[{}]\n", name);
      write_table(child.as<Node::Table>(), name, out);
    } else if (is_array_of_tables(child)) {
      for (const Node& element : child.as<Node::Array>()) {
        out += fmt::format("\n[[{}]]\n", name);
        write_table(element.as<Node::Table>(), name, out);
      }
    }
  }
}

}  // namespace

std::string Position::text() const {
  return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

bool Position::on_command_line() const { return file.starts_with(kCommandLine); }

const Node* Node::find(std::string_view key) const {
  if (is<Table>()) {
    const auto it = as<Table>().find(key);
    return it == as<Table>().end() ? nullptr : &it->second;
  }
  if (is<Array>()) {
    const auto i = to_number<std::size_t>(key);
    return i && *i < as<Array>().size() ? &as<Array>()[*i] : nullptr;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

const Node& nearest(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const Node* next = at->find(path.substr(0, dot));
    if (!next) break;
    at = next;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return *at;
}

std::string describe(const Node& node) {
  constexpr std::size_t kLongest = 60;
  if (node.is<Node::Table>()) return "a table";
  if (node.is<Node::Array>()) return "a list";
  if (node.is<std::string>() && node.as<std::string>().size() > kLongest)
    return in_quotes(fmt::format("{:.{}}...", node.as<std::string>(), kLongest));
  return to_inline_toml(node);
}

std::string to_inline_toml(const Node& node) {
  if (node.is<bool>()) return node.as<bool>() ? "true" : "false";
  if (node.is<std::int64_t>()) return std::to_string(node.as<std::int64_t>());
  if (node.is<double>()) return number_text(node.as<double>());
  if (node.is<std::string>()) return in_quotes(node.as<std::string>());
  std::vector<std::string> parts;
  if (node.is<Node::Array>()) {
    for (const Node& n : node.as<Node::Array>()) parts.push_back(to_inline_toml(n));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  for (const auto& [key, child] : node.as<Node::Table>())
    parts.push_back(key_text(key) + " = " + to_inline_toml(child));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string to_toml(const Node& root) {
  std::string out;
  write_table(root.as<Node::Table>(), "", out);
  return out;
}

}  // namespace mllmsim::scenarios
