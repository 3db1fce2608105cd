#include "scenarios/tree/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

void write_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(byte));
    else
      out += c;
  }
  out += '"';
}

void write_key(std::string_view key, std::string& out) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (!key.empty() && std::all_of(key.begin(), key.end(), bare))
    out += key;
  else
    write_quoted(key, out);
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

enum class Words : std::uint8_t { written, left_out };

void write_inline(const Node& node, Words words, std::string& out) {
  if (node.is<bool>()) {
    out += node.as<bool>() ? "true" : "false";
  } else if (node.is<std::int64_t>()) {
    out += fmt::format_int(node.as<std::int64_t>()).c_str();
  } else if (node.is<double>()) {
    out += number_text(node.as<double>());
  } else if (node.is<std::string>()) {
    write_quoted(node.as<std::string>(), out);
  } else if (node.is<Node::Array>()) {
    const char* before = "[";
    for (const Node& element : node.as<Node::Array>()) {
      out += before;
      write_inline(element, words, out);
      before = ", ";
    }
    out += node.as<Node::Array>().empty() ? "[]" : "]";
  } else {
    out += '{';
    const char* before = "";
    for (const auto& [key, child] : node.as<Node::Table>()) {
      if (words == Words::left_out && (key == "name" || key == "description")) continue;
      out += before;
      write_key(key, out);
      out += " = ";
      write_inline(child, words, out);
      before = ", ";
    }
    out += '}';
  }
}

// A table's own values first, then its tables under their headers, as TOML wants.
void write_table(const Node::Table& table, const std::string& path, std::string& out) {
  for (const auto& [key, child] : table) {
    if (child.is<Node::Table>() || is_array_of_tables(child)) continue;
    write_key(key, out);
    out += " = ";
    write_inline(child, Words::written, out);
    out += '\n';
  }
  for (const auto& [key, child] : table) {
    const bool several = is_array_of_tables(child);
    if (!several && !child.is<Node::Table>()) continue;
    std::string name = path.empty() ? path : path + ".";
    write_key(key, name);
    const auto write = [&](const Node& node, const char* open, const char* close) {
      ((out += open) += name) += close;
      write_table(node.as<Node::Table>(), name, out);
    };
    if (!several) {
      write(child, "\n[", "]\n");
      continue;
    }
    for (const Node& element : child.as<Node::Array>()) write(element, "\n[[", "]]\n");
  }
}

}  // namespace

std::string Position::text() const {
  return line == 0 ? file.str() : fmt::format("{}:{}:{}", file.str(), line, column);
}

bool Position::on_command_line() const { return file.str().starts_with(kCommandLine); }

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
    return to_inline_toml({fmt::format("{:.{}}...", node.as<std::string>(), kLongest), {}});
  return to_inline_toml(node);
}

std::string to_inline_toml(const Node& node) {
  std::string out;
  write_inline(node, Words::written, out);
  return out;
}

std::string to_nameless_toml(const Node& node) {
  std::string out;
  write_inline(node, Words::left_out, out);
  return out;
}

std::string to_toml(const Node& root) {
  std::string out;
  write_table(root.as<Node::Table>(), "", out);
  return out;
}

}  // namespace mllmsim::scenarios
