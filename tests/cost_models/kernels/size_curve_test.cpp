#include "cost_models/kernels/size_curve.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace costs;
namespace {

// 10 us up to 1 KB, then a kink, then 1 GB/s.
const SizeCurve kCurve =
    size_curve({{1e3, {10e-6}}, {1e5, {20e-6}}, {1e6, {1e-3}}, {1e7, {1e-2}}}, Seconds{1e-6});

TEST(SizeCurve, PassesThroughItsPoints) {
  for (const SizePoint& p : kCurve.points) EXPECT_NEAR(kCurve.at(p.bytes) / p.time, 1, 1e-12);
}

TEST(SizeCurve, NeverFallsWithSize) {
  double before = 0;
  for (double bytes = 1; bytes < 1e9; bytes *= 1.01) {
    const double now = kCurve.at(bytes).value;
    EXPECT_GE(now, before * (1 - 1e-12)) << bytes;
    before = now;
  }
}

TEST(SizeCurve, SmallSizesShowTheLatency) { EXPECT_NEAR(kCurve.at(0).value, 10e-6, 1e-12); }

TEST(SizeCurve, WithoutSmallSizesTheGivenLatencyIsUsed) {
  const SizeCurve large = size_curve({{1e6, {1e-3}}}, Seconds{1e-6});
  EXPECT_NEAR(large.at(0).value, 1e-6, 1e-15);
  EXPECT_NEAR(large.at(2e6).value, 2e-3, 1e-12);
}

TEST(SizeCurve, GoesOnAtTheLastBandwidth) {  // 9 MB in 9 ms between the last two points
  EXPECT_NEAR(kCurve.at(1.1e7).value, 1.1e-2, 1e-9);
}

TEST(SizeCurve, EqualSizesBecomeTheirGeometricMeanAndSoDoFalls) {
  const SizeCurve c =
      size_curve({{1e3, {1e-6}}, {1e3, {4e-6}}, {1e4, {3e-6}}, {1e5, {6e-6}}, {1e6, {1.5e-6}}}, {});
  ASSERT_EQ(c.points.size(), 4u);
  EXPECT_NEAR(c.points[0].time.value, 2e-6, 1e-15);
  for (std::size_t i : {1u, 2u, 3u})
    EXPECT_NEAR(c.points[i].time.value, 3e-6, 1e-15);  // 3, 6 and 1.5
  EXPECT_NEAR(c.at(2e6).value, 6e-6, 1e-15);           // a level end has one bandwidth
}

TEST(SizeCurve, CoverageTellsPointsFromGaps) {
  EXPECT_EQ(kCurve.coverage(1e5), Source::measured);
  EXPECT_EQ(kCurve.coverage(2e5), Source::interpolated);
  EXPECT_EQ(kCurve.coverage(1e9), Source::estimate);
}

}  // namespace
}  // namespace mllmsim
