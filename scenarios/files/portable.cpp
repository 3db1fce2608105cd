#include "scenarios/files/portable.hpp"

#include <filesystem>

#include "sim/base/data_directory.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

void make_portable(Node& node) {
  if (node.is<std::string>()) node.value = portable_name(node.as<std::string>());
  if (node.is<Node::Array>())
    for (Node& element : node.as<Node::Array>()) make_portable(element);
  if (!node.is<Node::Table>()) return;
  for (auto& [key, child] : node.as<Node::Table>())
    if (key != "name" && key != "description" && key != "assumptions") make_portable(child);
}

}  // namespace

std::string portable_name(const std::string& file) {
  const fs::path path = file;
  if (!path.is_absolute()) return file;
  const fs::path relative = path.lexically_relative(data_directory());
  const bool shipped = !relative.empty() && *relative.begin() != "..";
  return (shipped ? relative : path.filename()).generic_string();
}

std::string portable_text(Node tree) {
  make_portable(tree);
  return to_toml(tree);
}

}  // namespace mllmsim::scenarios
