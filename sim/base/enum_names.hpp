// Names of enumerators in files and messages: one table per enum, in the order of its enumerators,
// from which writing, reading and error messages all follow.
//
//   template <>
//   struct Names<Colour> {
//     static constexpr std::array<std::string_view, 2> list{"red", "green"};
//   };
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text.hpp"

namespace mllmsim {

template <class Enum>
struct Names;

template <class T>
concept NamedEnum = requires {
  Names<T>::list;
};

template <NamedEnum Enum>
constexpr std::string_view name_of(Enum value) {
  return Names<Enum>::list.at(static_cast<std::size_t>(value));
}

template <NamedEnum Enum>
constexpr std::optional<Enum> named(std::string_view name) {
  for (std::size_t i = 0; i < Names<Enum>::list.size(); ++i)
    if (Names<Enum>::list[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

template <NamedEnum Enum>
std::vector<std::string> all_names() {
  return {Names<Enum>::list.begin(), Names<Enum>::list.end()};
}

// "a", "b" or "c", for error messages.
template <NamedEnum Enum>
std::string choices() {
  return one_of(all_names<Enum>());
}

}  // namespace mllmsim
