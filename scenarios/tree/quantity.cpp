#include "scenarios/tree/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr double kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;

constexpr Unit kMemoryUnits[] = {{"B", 1},     {"kB", 1e3},  {"MB", 1e6},
                                 {"GB", 1e9},  {"TB", 1e12}, {"KiB", kKi},
                                 {"MiB", kMi}, {"GiB", kGi}, {"TiB", kTi}};
constexpr Unit kBandwidthUnits[] = {
    {"b/s", 1. / 8}, {"kb/s", 1e3 / 8}, {"Mb/s", 1e6 / 8}, {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8},
    {"B/s", 1},      {"kB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},     {"TB/s", 1e12},
    {"KiB/s", kKi},  {"MiB/s", kMi},    {"GiB/s", kGi},    {"TiB/s", kTi}};
constexpr Unit kDurationUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                   {"s", 1},     {"min", 60},  {"h", 3600}};
constexpr Unit kComputeRateUnits[] = {
    {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"FLOP/s", 1}};

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

const Unit* find_unit(std::string_view name, const Dimension& dimension) {
  const auto it = std::find_if(dimension.units.begin(), dimension.units.end(),
                               [&](const Unit& u) { return u.name == name; });
  return it == dimension.units.end() ? nullptr : &*it;
}

// Why `unit` is not one of the dimension's.
std::string unit_problem(std::string_view unit, const Dimension& dimension) {
  if (unit.empty()) return "without a unit";
  for (const Dimension* other : {&kMemorySize, &kBandwidth, &kDuration, &kComputeRate})
    if (find_unit(unit, *other)) return fmt::format("which is {}", other->noun);
  std::vector<std::string> all, same;
  for (const Unit& u : dimension.units) {
    all.emplace_back(u.name);
    if (same_ignoring_case(u.name, unit)) same.emplace_back(u.name);
  }
  if (!same.empty()) return fmt::format("whose unit is unknown; did you mean {}?", one_of(same));
  const std::string suggestion = did_you_mean(unit, all);
  if (!suggestion.empty()) return "whose unit is unknown" + suggestion;
  return fmt::format("whose unit is none of {}", fmt::join(all, ", "));
}

}  // namespace

const Dimension kMemorySize{"a memory size", "80 GiB", kMemoryUnits};
const Dimension kBandwidth{"a bandwidth", "200 Gb/s", kBandwidthUnits};
const Dimension kDuration{"a duration", "5 ms", kDurationUnits};
const Dimension kComputeRate{"a compute rate", "312 TFLOP/s", kComputeRateUnits};

ParsedQuantity parse_quantity(std::string_view text, const Dimension& dimension) {
  const auto wrong = [&](std::string_view why) {
    return ParsedQuantity{
        0, fmt::format("expected {} such as \"{}\", found \"{}\"{}{}", dimension.noun,
                       dimension.example, text.substr(0, 60), why.empty() ? "" : ", ", why)};
  };
  const std::string_view whole = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (error == std::errc::result_out_of_range) return wrong("a number too large or too small");
  if (error != std::errc{}) return wrong("");
  const std::string_view name = trimmed(whole.substr(static_cast<std::size_t>(end - whole.data())));
  const Unit* unit = find_unit(name, dimension);
  if (!unit) return wrong(unit_problem(name, dimension));
  const double value = number * unit->factor;
  if (!std::isfinite(value)) return wrong("which is not finite");
  return {value, ""};
}

}  // namespace mllmsim::scenarios
