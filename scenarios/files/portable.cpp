#include "scenarios/files/portable.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/data_directory.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

// What stands in a tree for people, whatever it looks like.
bool is_text(std::string_view key) {
  return key == "name" || key == "description" || key == "assumptions";
}

bool is_portable(const Node& node) {
  if (node.is<std::string>()) return !node.as<std::string>().starts_with('/');
  if (node.is<Node::Array>()) return std::ranges::all_of(node.as<Node::Array>(), is_portable);
  if (!node.is<Node::Table>()) return true;
  return std::ranges::all_of(node.as<Node::Table>(), [](const auto& member) {
    return is_text(member.first) || is_portable(member.second);
  });
}

void make_portable(Node& node) {
  if (node.is<std::string>()) node.value = portable_name(node.as<std::string>());
  if (node.is<Node::Array>())
    for (Node& element : node.as<Node::Array>()) make_portable(element);
  if (!node.is<Node::Table>()) return;
  for (auto& [key, child] : node.as<Node::Table>())
    if (!is_text(key)) make_portable(child);
}

}  // namespace

std::string portable_name(const std::string& file) {
  const fs::path path = file;
  if (!path.is_absolute()) return file;
  const fs::path relative = path.lexically_relative(data_directory());
  const bool shipped = !relative.empty() && *relative.begin() != "..";
  return (shipped ? relative : path.filename()).generic_string();
}

std::string portable_message(std::string_view message) {
  constexpr std::array<std::string_view, 5> kEnds{": ", "; ", ", ", "\"", "'"};
  std::string out;
  while (!message.empty()) {
    const bool begins = out.empty() || out.back() == ' ' || out.back() == '"' || out.back() == '\'';
    if (!begins || !message.starts_with('/') || message.starts_with("/ ")) {
      out += message.front();
      message.remove_prefix(1);
      continue;
    }
    std::size_t end = message.size();
    for (const std::string_view e : kEnds) end = std::min(end, message.find(e));
    const std::string path(message.substr(0, end));
    const std::string name = portable_name(path);
    out += name.empty() ? path : name;  // "/" alone is no file
    message.remove_prefix(end);
  }
  return out;
}

std::string portable_text(const Node& tree) {
  if (is_portable(tree)) return to_toml(tree);
  Node portable = tree;
  make_portable(portable);
  return to_toml(portable);
}

}  // namespace mllmsim::scenarios
