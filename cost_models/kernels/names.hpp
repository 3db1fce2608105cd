// Names of kernels' enumerators in files.
#pragma once

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/enum_names.hpp"

namespace mllmsim {

template <>
struct Names<costs::Source> {
  static constexpr std::array<std::string_view, costs::kSources> list{"measured", "interpolated",
                                                                      "transferred", "estimate"};
};
template <>
struct Names<costs::GemmPass> {
  static constexpr std::array<std::string_view, 3> list{"forward", "input_gradient",
                                                        "weight_gradient"};
};
template <>
struct Names<costs::MemoryOp> {
  static constexpr std::array<std::string_view, 11> list{
      "elementwise",         "norm",
      "norm_backward",       "softmax",
      "embedding",           "cross_entropy",
      "optimizer",           "activation",
      "activation_backward", "cross_entropy_backward",
      "quantise_mxfp8"};
};
template <>
struct Names<costs::CollectiveOp> {
  static constexpr std::array<std::string_view, 4> list{"all_gather", "reduce_scatter",
                                                        "all_reduce", "all_to_all"};
};

}  // namespace mllmsim
