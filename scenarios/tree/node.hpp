// A scenario file as a tree of values that remember where they were written.
//
// TOML files, Hugging Face's JSON and command-line overrides all become this tree; merging works on
// it, and everything after reads only it. A value keeps its position when it is merged into another
// file's table, so a problem is reported where the user can mend it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mllmsim::scenarios {

// A text of which copies are the same: all values of a file share its name.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}
  const std::string& str() const {
    static const std::string kNone;
    return text_ ? *text_ : kNone;
  }
  operator const std::string&() const { return str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

struct Position {
  SharedText file;         // or "command line: a.b=c"
  std::uint32_t line = 0;  // from 1; 0: not known
  std::uint32_t column = 0;

  std::string text() const;  // "runs/a.toml:12:3"
  bool on_command_line() const;
};
inline constexpr std::string_view kCommandLine = "command line: ";

struct Node {
  using Array = std::vector<Node>;
  using Table = std::map<std::string, Node, std::less<>>;  // sorted: the canonical order

  std::variant<bool, std::int64_t, double, std::string, Array, Table> value = Table{};
  Position position;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value);
  }
  template <class T>
  T& as() {
    return std::get<T>(value);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(value);
  }

  // A table's or (by index) an array's member; null if there is none, or this is neither.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);

  // Same values, wherever they were written.
  friend bool operator==(const Node& a, const Node& b) { return a.value == b.value; }
};

// The node at a dotted path such as "model.encoders.0.projector", or its nearest existing ancestor.
const Node& nearest(const Node& root, std::string_view path);

// What a message says was found: "true", "42", "\"abc\"", "a list", "a table".
std::string describe(const Node& node);

// The tree as TOML: sorted keys, no comments. Equal trees give equal texts, and the text reads back
// as the same tree.
std::string to_toml(const Node& root);

// One value as TOML, on one line.
std::string to_inline_toml(const Node& node);
// The same without names and descriptions, of which its tables may have any.
std::string to_nameless_toml(const Node& node);

}  // namespace mllmsim::scenarios
