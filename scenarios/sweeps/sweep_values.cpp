#include "scenarios/sweeps/sweep_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>

#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr std::size_t kLongestRange = 1'000'000;

struct Number {
  double value = 0;
  bool integer = true;
};

// Takes a number off the front of the text.
std::optional<Number> take_number(std::string_view& text) {
  Number n;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n.value);
  if (error != std::errc{} || !std::isfinite(n.value)) return std::nullopt;
  const auto length = static_cast<std::size_t>(end - text.data());
  n.integer = text.substr(0, length).find_first_of(".eE") == std::string_view::npos;
  text.remove_prefix(length);
  return n;
}

struct Steps {
  Number from, to, step{1, true};
  char by = '+';
  std::string unit;

  // Computed from the start, not from the value before, so that rounding does not add up.
  double at(std::size_t i) const {
    const auto n = static_cast<double>(i);
    return by == '*' ? from.value * std::pow(step.value, n) : from.value + step.value * n;
  }
  bool integers() const { return from.integer && step.integer; }
};

std::optional<Steps> parse_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::string_view before = text.substr(0, dots), after = text.substr(dots + 2);
  Steps range;
  const auto from = take_number(before), to = take_number(after);
  if (!from || !to || !before.empty()) return std::nullopt;
  range.from = *from;
  range.to = *to;
  if (!after.empty() && (after[0] == '*' || after[0] == '+')) {
    range.by = after[0];
    after.remove_prefix(1);
    const auto step = take_number(after);
    if (!step) return std::nullopt;
    range.step = *step;
  }
  range.unit = std::string(trimmed(after));
  return range;
}

Node value_of(double value, const Steps& range, const Position& position) {
  Node node;
  node.position = position;
  const bool integer = range.integers() && std::abs(value) < 9e15;
  if (!range.unit.empty())
    node.value = fmt::format("{} {}", value, range.unit);
  else if (integer)
    node.value = static_cast<std::int64_t>(std::llround(value));
  else
    node.value = value;
  return node;
}

}  // namespace

std::optional<std::vector<Node>> range_values(std::string_view text, const Position& position) {
  text = trimmed(text);
  const std::optional<Steps> range = parse_range(text);
  if (!range) return std::nullopt;
  const auto wrong = [&](const std::string& why) {
    return UserError(position.text(), "", fmt::format("the range {} {}", text, why));
  };
  if (range->from.value > range->to.value) throw wrong("is empty");
  if (range->by == '+' ? range->step.value <= 0 : range->step.value <= 1 || range->from.value <= 0)
    throw wrong("never ends");
  const double end = range->to.value + 1e-9 * std::abs(range->to.value);
  std::vector<Node> values;
  for (std::size_t i = 0; range->at(i) <= end; ++i) {
    if (i == kLongestRange) throw wrong(fmt::format("has more than {} values", kLongestRange));
    values.push_back(value_of(range->at(i), *range, position));
  }
  return values;
}

std::vector<Node> listed_values(std::string_view text, const Position& position) {
  std::vector<Node> values;
  const auto add = [&](std::string_view element) {
    element = trimmed(element);
    if (element.empty()) throw UserError(position.text(), "", "a value is missing between commas");
    if (auto range = range_values(element, position))
      values.insert(values.end(), range->begin(), range->end());
    else
      values.push_back(parse_value(std::string(element), position));
  };
  std::size_t start = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      add(text.substr(start, i - start));
      start = i + 1;
    }
  }
  add(text.substr(start));
  return values;
}

}  // namespace mllmsim::scenarios
