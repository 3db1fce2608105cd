// Typed access to one table of a tree.
//
// Every read checks type and range, and reports what was expected and what was found. A key nobody
// asked for when the reader goes out of scope is reported as unknown, with the nearest asked-for
// key; so what a table may hold is said once, by the code that reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "scenarios/tree/quantity.hpp"
#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"

namespace mllmsim::scenarios {

// Inclusive. The default limits sizes such as layers, widths and GPUs so that their products fit
// into 64 bits.
struct Range {
  double min = 1;
  double max = 1e6;
};
inline constexpr Range kAnyNumber{-1e15, 1e15};

enum class Zero : std::uint8_t { refused, allowed };

class TableReader {
 public:
  // `key` is the table's full name in messages, "" for a whole file.
  TableReader(const Node& table, std::string key, Problems& problems);
  ~TableReader();  // NOLINT(bugprone-exception-escape)
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  // The member, or null; either way the key is known from here on.
  const Node* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }
  std::string full_key(std::string_view key) const;
  void problem(std::string_view key, std::string message);  // at the member, or at the table

  // Each returns whether the key is there and right; otherwise `out` stays as it was.
  bool read(std::string_view key, bool& out);
  bool read(std::string_view key, std::int64_t& out, Range range = {});
  bool read(std::string_view key, int& out, Range range = {});
  bool read(std::string_view key, double& out, Range range = {});
  bool read(std::string_view key, std::string& out);
  bool read(std::string_view key, std::vector<std::int64_t>& out, Range range = {});
  bool read(std::string_view key, std::vector<int>& out, Range range = {});
  bool read(std::string_view key, Bytes& out, Zero zero = Zero::refused);
  bool read(std::string_view key, BytesPerSecond& out);
  bool read(std::string_view key, Seconds& out, Zero zero = Zero::refused);
  // One duration or a list of them.
  bool read(std::string_view key, std::vector<Seconds>& out);
  // One of the names in the enum's table.
  template <NamedEnum Enum>
  bool read(std::string_view key, Enum& out) {
    std::size_t choice = 0;
    if (!read_choice(key, choice, all_names<Enum>())) return false;
    out = static_cast<Enum>(choice);
    return true;
  }

  // As read(), and a missing key is a problem too.
  template <class... Arguments>
  bool require(std::string_view key, Arguments&&... arguments) {
    if (!has(key)) {
      missing(key);
      return false;
    }
    return read(key, std::forward<Arguments>(arguments)...);
  }

 private:
  bool read_choice(std::string_view key, std::size_t& out, const std::vector<std::string>& names);
  bool integer(const Node& node, const std::string& name, std::int64_t& out, Range range);
  bool quantity(const Node& node, const std::string& name, double& out, const Dimension& dimension,
                Zero zero, double largest);
  bool wrong(const Node& node, const std::string& name, std::string_view expected);
  void missing(std::string_view key);

  const Node& table_;
  std::string key_;
  Problems& problems_;
  bool valid_;
  std::vector<std::string> known_;  // asked for, perhaps several times
  std::vector<const Node*> found_;  // of these, the members
};

}  // namespace mllmsim::scenarios
