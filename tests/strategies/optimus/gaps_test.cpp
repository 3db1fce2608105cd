// Gaps: where kernels fit, and what is left.
#include "strategies/optimus/gaps.hpp"

#include <gtest/gtest.h>

namespace mllmsim::optimus {
namespace {

const std::vector<Gap> kGaps = {{Time{0}, Time{10}, true}, {Time{20}, kAlways}};

TEST(Gaps, AKernelIsSlowedInATpBubble) {
  EXPECT_EQ(GapCursor(kGaps, Time{0}).place(Time{0}, Time{6}, Time{9}),
            (Gap{Time{0}, Time{9}, true}));
}

TEST(Gaps, AKernelThatDoesNotFitSlowedGoesOn) {
  EXPECT_EQ(GapCursor(kGaps, Time{0}).place(Time{0}, Time{6}, Time{11}),
            (Gap{Time{20}, Time{26}, false}));
}

TEST(Gaps, KernelsStandBehindEachOther) {
  GapCursor cursor(kGaps, Time{0});
  cursor.place(Time{0}, Time{4}, Time{4});
  EXPECT_EQ(cursor.place(Time{0}, Time{5}, Time{5}), (Gap{Time{4}, Time{9}, true}));
}

// 2..4 cuts the first gap in two, 22..30 leaves 20..22 and what comes after 30.
TEST(Gaps, WhatIsTakenIsNoGap) {
  std::vector<Gap> gaps = kGaps, spare;
  take(gaps, {{Time{2}, Time{4}}, {Time{22}, Time{30}}}, spare);
  EXPECT_EQ(gaps, (std::vector<Gap>{{Time{0}, Time{2}, true},
                                    {Time{4}, Time{10}, true},
                                    {Time{20}, Time{22}},
                                    {Time{30}, kAlways}}));
}

}  // namespace
}  // namespace mllmsim::optimus
