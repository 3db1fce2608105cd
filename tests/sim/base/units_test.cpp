#include "sim/base/units.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

constexpr Time kLongest{std::numeric_limits<std::int64_t>::max()};

TEST(Units, SecondsAreRoundedToNanoseconds) {
  EXPECT_EQ(to_time(Seconds{1.5e-9}), Time{2});
  EXPECT_EQ(to_time(Seconds{9.2e9}).value, 9'200'000'000'000'000'000);
}

TEST(Units, WhatDoesNotFitIsRefusedNotWrapped) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const double s : {9.3e9, -9.3e9, 1e300, kInfinity, -kInfinity, kNone})
    EXPECT_THROW(to_time(Seconds{s}), UserError) << s;
  EXPECT_THROW(kLongest + Time{1}, UserError);
  EXPECT_THROW(-kLongest - Time{2}, UserError);
  EXPECT_THROW(kLongest * 2, UserError);
  EXPECT_THROW(scaled(kLongest, 1.5), UserError);
  Time sum = kLongest;
  EXPECT_THROW(sum += Time{1}, UserError);
  EXPECT_EQ(sum, kLongest);
}

}  // namespace
}  // namespace mllmsim
