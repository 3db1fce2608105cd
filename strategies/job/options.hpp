// Options of a strategy: what it accepts, and typed access to what a job gives.
//
// An option's type is that of its default. Numbers have a range, strings choices, lists a range for
// their numbers and a size. Whoever takes options from a user asks problem_with() about each value
// (the scenario reader does, with file and line), so a strategy finds only values it accepts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/errors.hpp"

namespace mllmsim {

using OptionValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Options = std::map<std::string, OptionValue>;

// Inclusive.
struct OptionRange {
  double min = -1e15, max = 1e15;
};

struct OptionSpec {
  std::string name;
  std::string description;
  OptionValue default_value;
  std::vector<std::string> choices{};  // of a string; empty: any
  OptionRange range{};                 // of a number, or of each number of a list
  OptionRange size{0, 1e6};            // of a list: how many numbers
};

// What was expected and what was found; "" if the option accepts the value.
std::string problem_with(const OptionSpec& spec, const OptionValue& value);

// The value of an option, of the type its spec has.
template <class T>
const T& option(const Options& options, const std::string& name) {
  const auto it = options.find(name);
  check(it != options.end() && std::holds_alternative<T>(it->second),
        "option " + name + " is read as its strategy lists it");
  return std::get<T>(it->second);
}

}  // namespace mllmsim
