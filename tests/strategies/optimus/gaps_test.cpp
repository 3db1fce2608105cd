// Gaps: where kernels fit, and what is left.
#include "strategies/optimus/gaps.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace mllmsim::optimus {
namespace {

const GapList kGaps({{Time{0}, Time{10}, true}, {Time{20}, kAlways}});

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
  GapList gaps = kGaps;
  gaps.take(std::vector<Gap>{{Time{2}, Time{4}}, {Time{22}, Time{30}}});
  EXPECT_EQ(gaps.gaps(), (std::vector<Gap>{{Time{0}, Time{2}, true},
                                           {Time{4}, Time{10}, true},
                                           {Time{20}, Time{22}},
                                           {Time{30}, kAlways}}));
}

// What the list is, without blocks: every gap is looked at, and all of it written anew.
class PlainList {
 public:
  explicit PlainList(std::vector<Gap> gaps) : gaps_(std::move(gaps)) {}
  const std::vector<Gap>& gaps() const { return gaps_; }

  std::vector<Gap> place(const std::vector<Time>& kernels, Time earliest) const {
    std::vector<Gap> placed;
    std::size_t at = 0;
    for (const Time kernel : kernels)
      for (;; ++at) {
        const Time start = std::max(gaps_[at].from, earliest);
        const Time end = start + (gaps_[at].tp_bubble ? kernel * 2 : kernel);
        if (end > gaps_[at].to) continue;
        placed.push_back({start, end, gaps_[at].tp_bubble});
        earliest = end;
        break;
      }
    return placed;
  }

  void take(const std::vector<Gap>& taken) {
    for (const Gap& t : taken) {
      std::vector<Gap> left;
      for (const Gap& g : gaps_) {
        const bool here = g.from <= t.from && t.to <= g.to;
        if (!here || t.from > g.from) left.push_back({g.from, here ? t.from : g.to, g.tp_bubble});
        if (here && t.to < g.to) left.push_back({t.to, g.to, g.tp_bubble});
      }
      gaps_ = std::move(left);
    }
  }

 private:
  std::vector<Gap> gaps_;
};

TEST(Gaps, BlocksChangeNothing) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Gap> gaps;
    Time at{0};
    const int count = *rc::gen::inRange(1, 400);
    for (int i = 0; i < count; ++i) {
      const Time from = at + Time{*rc::gen::inRange(1, 5)};
      at = from + Time{*rc::gen::inRange(1, 20)};
      gaps.push_back({from, at, *rc::gen::arbitrary<bool>()});
    }
    gaps.push_back({at + Time{1}, kAlways});
    PlainList plain(gaps);
    GapList list(gaps);
    for (int pass = 0; pass < 5; ++pass) {
      const Time from{*rc::gen::inRange(0, 500)};
      std::vector<Time> kernels;
      for (const int k : *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 25)))
        kernels.push_back(Time{k});
      GapCursor cursor(list, from);
      std::vector<Gap> placed;
      for (const Time k : kernels) placed.push_back(cursor.place(from, k, k * 2));
      RC_ASSERT(placed == plain.place(kernels, from));
      list.take(placed);
      plain.take(placed);
      RC_ASSERT(list.gaps() == plain.gaps());
    }
  }));
}

}  // namespace
}  // namespace mllmsim::optimus
