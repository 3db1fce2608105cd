#include "scenarios/tree/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/tree/other_names.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr double kMostBytes = 1e18;  // fits std::int64_t
constexpr double kMostBytesPerSecond = 1e18;
constexpr double kMostSeconds = 1e8;  // simulated nanoseconds fit std::int64_t

std::string expectation(const char* number, Range range) {
  if (range.min == kAnyNumber.min) return number;
  if (range.min == 1 && std::string_view(number) == "a whole number")
    return "a positive whole number";
  return fmt::format("{} of at least {}", number, range.min);
}

}  // namespace

TableReader::TableReader(const Node& table, std::string key, Problems& problems)
    : table_(table), key_(std::move(key)), problems_(problems), valid_(table.is<Node::Table>()) {
  if (!valid_) {
    wrong(table, key_, "a table");
    return;
  }
  constexpr std::size_t kKeys = 32;  // most tables have fewer
  known_.reserve(kKeys);
  found_.reserve(table.as<Node::Table>().size());
}

// Only memory can run out here, and then the program ends either way.
TableReader::~TableReader() {  // NOLINT(bugprone-exception-escape)
  if (!valid_) return;
  for (const auto& [name, node] : table_.as<Node::Table>())
    if (std::find(found_.begin(), found_.end(), &node) == found_.end())
      problems_.add(node.position, full_key(name),
                    "unknown key" + key_meant(full_key(name), did_you_mean(name, known_)));
}

const Node* TableReader::find(std::string_view key) {
  known_.emplace_back(key);
  const Node* member = valid_ ? table_.find(key) : nullptr;
  if (member) found_.push_back(member);
  return member;
}

std::string TableReader::full_key(std::string_view key) const {
  return key_.empty() ? std::string(key) : fmt::format("{}.{}", key_, key);
}

void TableReader::problem(std::string_view key, std::string message) {
  if (!valid_) return;  // that it is no table says it all
  const Node* node = find(key);
  problems_.add(node ? node->position : table_.position, full_key(key), std::move(message));
}

bool TableReader::read(std::string_view key, bool& out) {
  const Node* node = find(key);
  if (!node) return false;
  if (!node->is<bool>()) return wrong(*node, full_key(key), "true or false");
  out = node->as<bool>();
  return true;
}

bool TableReader::read(std::string_view key, std::int64_t& out, Range range) {
  const Node* node = find(key);
  return node && integer(*node, full_key(key), out, range);
}

bool TableReader::read(std::string_view key, int& out, Range range) {
  std::int64_t wide = 0;
  range.max = std::min(range.max, double{std::numeric_limits<int>::max()});
  if (!read(key, wide, range)) return false;
  out = static_cast<int>(wide);
  return true;
}

bool TableReader::read(std::string_view key, double& out, Range range) {
  const Node* node = find(key);
  if (!node) return false;
  double x = 0;
  if (node->is<double>())
    x = node->as<double>();
  else if (node->is<std::int64_t>())
    x = static_cast<double>(node->as<std::int64_t>());
  else
    return wrong(*node, full_key(key), expectation("a number", range));
  if (!(x >= range.min)) return wrong(*node, full_key(key), expectation("a number", range));
  if (x > range.max)
    return wrong(*node, full_key(key), fmt::format("a number of at most {}", range.max));
  out = x;
  return true;
}

bool TableReader::read(std::string_view key, std::string& out) {
  const Node* node = find(key);
  if (!node) return false;
  if (!node->is<std::string>()) return wrong(*node, full_key(key), "a string");
  out = node->as<std::string>();
  return true;
}

bool TableReader::read(std::string_view key, std::vector<std::int64_t>& out, Range range) {
  const Node* node = find(key);
  if (!node) return false;
  if (!node->is<Node::Array>()) return wrong(*node, full_key(key), "a list of whole numbers");
  std::vector<std::int64_t> list;
  bool right = true;
  for (const Node& element : node->as<Node::Array>()) {
    const std::string name = fmt::format("{}.{}", full_key(key), list.size());
    right &= integer(element, name, list.emplace_back(), range);
  }
  if (right) out = std::move(list);
  return right;
}

bool TableReader::read(std::string_view key, std::vector<int>& out, Range range) {
  std::vector<std::int64_t> wide;
  if (!read(key, wide, range)) return false;
  out.clear();
  for (const std::int64_t x : wide) out.push_back(static_cast<int>(x));
  return true;
}

bool TableReader::read(std::string_view key, Bytes& out, Zero zero) {
  const Node* node = find(key);
  double bytes = 0;
  if (!node || !quantity(*node, full_key(key), bytes, kMemorySize, zero, kMostBytes)) return false;
  out = {std::llround(bytes)};
  return true;
}

bool TableReader::read(std::string_view key, BytesPerSecond& out) {
  const Node* node = find(key);
  return node &&
         quantity(*node, full_key(key), out.value, kBandwidth, Zero::refused, kMostBytesPerSecond);
}

bool TableReader::read(std::string_view key, Seconds& out, Zero zero) {
  const Node* node = find(key);
  return node && quantity(*node, full_key(key), out.value, kDuration, zero, kMostSeconds);
}

bool TableReader::read(std::string_view key, std::vector<Seconds>& out) {
  const Node* node = find(key);
  if (!node) return false;
  std::vector<Seconds> list;
  bool right = true;
  const auto one = [&](const Node& element, const std::string& name) {
    right &=
        quantity(element, name, list.emplace_back().value, kDuration, Zero::refused, kMostSeconds);
  };
  if (node->is<Node::Array>()) {
    for (const Node& element : node->as<Node::Array>())
      one(element, fmt::format("{}.{}", full_key(key), list.size()));
  } else {
    one(*node, full_key(key));
  }
  if (right) out = std::move(list);
  return right;
}

bool TableReader::read_choice(std::string_view key, std::size_t& out,
                              const std::vector<std::string>& names) {
  const Node* node = find(key);
  if (!node) return false;
  if (!node->is<std::string>()) return wrong(*node, full_key(key), one_of(names));
  const auto it = std::find(names.begin(), names.end(), node->as<std::string>());
  if (it == names.end()) {
    problems_.add(node->position, full_key(key),
                  fmt::format("expected {}, found {}{}", one_of(names), describe(*node),
                              did_you_mean(node->as<std::string>(), names)));
    return false;
  }
  out = static_cast<std::size_t>(it - names.begin());
  return true;
}

bool TableReader::integer(const Node& node, const std::string& name, std::int64_t& out,
                          Range range) {
  const std::string expected = expectation("a whole number", range);
  if (!node.is<std::int64_t>()) return wrong(node, name, expected);
  const std::int64_t value = node.as<std::int64_t>();
  if (static_cast<double>(value) < range.min) return wrong(node, name, expected);
  if (static_cast<double>(value) > range.max)
    return wrong(node, name, fmt::format("a whole number of at most {:.0f}", range.max));
  out = value;
  return true;
}

bool TableReader::quantity(const Node& node, const std::string& name, double& out,
                           const Dimension& dimension, Zero zero, double largest) {
  if (!node.is<std::string>()) {
    const bool number = node.is<std::int64_t>() || node.is<double>();
    problems_.add(node.position, name,
                  fmt::format("expected {} with its unit, such as \"{}\", found {}{}",
                              dimension.noun, dimension.example, describe(node),
                              number ? ", a bare number that could mean any unit" : ""));
    return false;
  }
  const ParsedQuantity parsed = parse_quantity(node.as<std::string>(), dimension);
  if (!parsed.problem.empty()) {
    problems_.add(node.position, name, parsed.problem);
    return false;
  }
  const bool allowed = zero == Zero::allowed ? parsed.value >= 0 : parsed.value > 0;
  if (!allowed)
    return wrong(
        node, name,
        fmt::format("{} {}", dimension.noun, zero == Zero::allowed ? "of at least 0" : "above 0"));
  if (parsed.value > largest) return wrong(node, name, "something a machine could have");
  out = parsed.value;
  return true;
}

bool TableReader::wrong(const Node& node, const std::string& name, std::string_view expected) {
  problems_.add(node.position, name,
                fmt::format("expected {}, found {}", expected, describe(node)));
  return false;
}

void TableReader::missing(std::string_view key) {
  if (valid_) problems_.add(table_.position, full_key(key), "missing, and it has no default");
}

}  // namespace mllmsim::scenarios
