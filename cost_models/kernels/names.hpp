// Names of enumerators in files, in the order of the enums.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/kernels/kernel_costs.hpp"

namespace mllmsim::costs {

template <class Enum>
struct Names;
template <>
struct Names<Source> {
  static constexpr std::array<std::string_view, 4> list{"measured", "interpolated", "transferred",
                                                        "estimate"};
};
template <>
struct Names<GemmPass> {
  static constexpr std::array<std::string_view, 3> list{"forward", "input_gradient",
                                                        "weight_gradient"};
};
template <>
struct Names<MemoryOp> {
  static constexpr std::array<std::string_view, 7> list{
      "elementwise", "norm", "norm_backward", "softmax", "embedding", "cross_entropy", "optimizer"};
};
template <>
struct Names<CollectiveOp> {
  static constexpr std::array<std::string_view, 3> list{"all_gather", "reduce_scatter",
                                                        "all_reduce"};
};

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return Names<Enum>::list.at(static_cast<std::size_t>(value));
}

template <class Enum>
constexpr std::optional<Enum> named(std::string_view name) {
  for (std::size_t i = 0; i < Names<Enum>::list.size(); ++i)
    if (Names<Enum>::list[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// "a, b or c", for error messages.
template <class Enum>
std::string choices() {
  std::string out;
  const auto& list = Names<Enum>::list;
  for (std::size_t i = 0; i < list.size(); ++i)
    out += (i == 0 ? "" : i + 1 == list.size() ? " or " : ", ") + std::string(list[i]);
  return out;
}

}  // namespace mllmsim::costs
