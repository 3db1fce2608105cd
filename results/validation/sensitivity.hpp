// Which measurement matters most? Each part of the calibration made 10 % slower, one at a time, and
// how much longer some runs then take. A part that moves a run by 5 % must be known to a few
// percent; one that moves it by 0.1 % need not be measured at all.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "results/validation/validation.hpp"

namespace mllmsim::validation {

inline constexpr std::array<const char*, 8> kSensitivityParts = {"gemm",
                                                                 "attention",
                                                                 "memory_bound",
                                                                 "optimizer",
                                                                 "collectives in a node",
                                                                 "collectives across nodes",
                                                                 "point to point",
                                                                 "launch (host_time_per_kernel)"};

struct SensitivityRow {
  std::string id, source;
  std::array<double, kSensitivityParts.size()> change{};  // of iteration_s, 0.05: 5 % longer
};

// Of the points that say `sensitivity = true`.
std::vector<SensitivityRow> sensitivity(std::span<const scenarios::PublishedFamily> families,
                                        Progress* progress = nullptr);

}  // namespace mllmsim::validation
