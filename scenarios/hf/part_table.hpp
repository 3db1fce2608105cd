// The table that a config.json becomes, as it is filled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/hf/config_object.hpp"
#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

struct Flag {
  const char* key;
  bool value;
};
struct Rename {
  const char* ours;
  const char* theirs;
};
struct Default {
  const char* key;  // theirs
  std::int64_t value;
};

class PartTable {
 public:
  explicit PartTable(std::string file) { node_.position = {std::move(file), 0, 0}; }

  void set(const char* key, std::int64_t value) { put(key, value); }
  void set(const char* key, bool value) { put(key, value); }
  void set(const char* key, double value) { put(key, value); }
  void set(const char* key, const char* value) { put(key, std::string(value)); }
  void set(const char* key, const std::string& value) { put(key, value); }
  void set(const char* key, const std::vector<std::int64_t>& values) {
    put(key, Node::Array{});
    for (const std::int64_t value : values) {
      Node element;
      element.position = node_.position;
      element.value = value;
      node_.as<Node::Table>()[key].as<Node::Array>().push_back(std::move(element));
    }
  }
  void set(const char* key, Node table) { node_.as<Node::Table>()[key] = std::move(table); }
  template <class T>
  void set_if(const char* key, const std::optional<T>& value) {
    if (value) set(key, *value);
  }

  // A number read before; 0 if it is missing.
  std::int64_t number(const char* key) const {
    const Node* found = node_.find(key);
    return found && found->is<std::int64_t>() ? found->as<std::int64_t>() : 0;
  }
  bool has(const char* key) const { return node_.find(key) != nullptr; }

  Node take() { return std::move(node_); }

 private:
  template <class T>
  void put(const char* key, T value) {
    Node& node = node_.as<Node::Table>()[key];
    node.value = std::move(value);
    node.position = node_.position;
  }

  Node node_;
};

}  // namespace mllmsim::scenarios
