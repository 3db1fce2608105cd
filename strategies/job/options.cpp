#include "strategies/job/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.hpp"

namespace mllmsim {
namespace {

constexpr OptionRange kAny{};

bool inside(OptionRange range, double x) { return x >= range.min && x <= range.max; }  // NaN is not

// "of at least 1", "from 0 to 10"
std::string words(OptionRange range) {
  if (range.max == kAny.max) return fmt::format("of at least {}", range.min);
  if (range.min == kAny.min) return fmt::format("of at most {}", range.max);
  return fmt::format("from {} to {}", range.min, range.max);
}

struct Checker {
  const OptionSpec& spec;

  std::string operator()(bool) const { return ""; }
  std::string operator()(std::int64_t x) const {
    if (inside(spec.range, static_cast<double>(x))) return "";
    return fmt::format("expected a whole number {}, found {}", words(spec.range), x);
  }
  std::string operator()(double x) const {
    if (inside(spec.range, x)) return "";
    return fmt::format("expected a number {}, found {}", words(spec.range), x);
  }
  std::string operator()(const std::string& x) const {
    const std::vector<std::string>& names = spec.choices;
    if (names.empty() || std::find(names.begin(), names.end(), x) != names.end()) return "";
    return fmt::format("expected {}, found \"{}\"{}", one_of(names), x, did_you_mean(x, names));
  }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    if (!inside(spec.size, static_cast<double>(list.size())))
      return fmt::format("expected a list {} long, found {} numbers", words(spec.size),
                         list.size());
    for (const std::int64_t x : list)
      if (!inside(spec.range, static_cast<double>(x)))
        return fmt::format("expected whole numbers {}, found {}", words(spec.range), x);
    return "";
  }
};

}  // namespace

std::string problem_with(const OptionSpec& spec, const OptionValue& value) {
  check(value.index() == spec.default_value.index(), "an option has the type of its default");
  return std::visit(Checker{spec}, value);
}

}  // namespace mllmsim
