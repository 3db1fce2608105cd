#include "sim/base/quantile.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

// Four values: 0.9 is at position 0.9 * 3 = 2.7, 70 % of the way from the third to the fourth.
TEST(Quantile, LiesBetweenItsNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({10, 1, 3, 2}, 0.9), 3 + 0.7 * 7);
  EXPECT_DOUBLE_EQ(quantile({40, 10, 30, 20}, 0.25), 17.5);
}

TEST(Quantile, TheEndsAreTheSmallestAndTheLargest) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 1), 3);
  EXPECT_DOUBLE_EQ(quantile({5}, 0.9), 5);
}

TEST(Quantile, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Quantile, OfNothingThereIsNone) { EXPECT_THROW(median({}), InternalError); }

}  // namespace
}  // namespace mllmsim
