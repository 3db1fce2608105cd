// Rates of flows that share links, derived by hand. A flow of duration 1000 ns that puts u * 1000
// bytes on a link of 1 byte per ns needs the share u of it.
#include "sim/kernel/link_sharing.hpp"

#include <gtest/gtest.h>

#include <map>

namespace mllmsim {
namespace {

constexpr BytesPerSecond kBytePerNs{1e9};
constexpr Time kDuration{1000};
constexpr LinkId kA{0}, kB{1};

struct Flows {
  explicit Flows(const std::vector<std::vector<LinkUse>>& flows, bool late = false) : program(1) {
    for (const auto& uses : flows) transfers.push_back(program.add_transfer(uses));
    links.emplace(std::vector<BytesPerSecond>(2, kBytePerNs), program);
    sharing.emplace(*links, program, late);
  }
  // Starts a flow, or ends it, and takes note of completions.
  void start(std::size_t flow, Time now) {
    for (const auto& c : sharing->start(transfers[flow], now, kDuration))
      completion[c.transfer.value] = c.time.value;
  }
  void finish(std::size_t flow, Time now) {
    for (const auto& c : sharing->finish(transfers[flow], now))
      completion[c.transfer.value] = c.time.value;
  }

  Program program;
  std::vector<TransferId> transfers;
  std::optional<RouteLinks> links;
  std::optional<LinkSharing> sharing;
  std::map<std::uint32_t, std::int64_t> completion;
};

LinkUse use(LinkId link, std::int64_t bytes) { return {link, {bytes}}; }

TEST(LinkSharing, AFlowAloneTakesItsOwnTime) {
  Flows f({{use(kA, 400)}});
  f.start(0, Time{50});
  EXPECT_EQ(f.completion[0], 1050);
}

TEST(LinkSharing, FlowsThatFitTogetherDoNotSlowEachOther) {
  Flows f({{use(kA, 400)}, {use(kA, 600)}});
  f.start(0, Time{0});
  f.start(1, Time{0});
  EXPECT_EQ(f.completion[0], 1000);
  EXPECT_EQ(f.completion[1], 1000);
}

// Each needs all of the link: rate 1/2.
TEST(LinkSharing, TwoFlowsHalveALink) {
  Flows f({{use(kA, 1000)}, {use(kA, 1000)}});
  f.start(0, Time{0});
  f.start(1, Time{0});
  EXPECT_EQ(f.completion[0], 2000);
  EXPECT_EQ(f.completion[1], 2000);
}

// Alone for 500 ns, then at rate 1/2: half of the work takes 1000 ns more. The other has done half
// when the first ends at 1500, and the rest at full rate.
TEST(LinkSharing, ALateFlowSharesFromItsStart) {
  Flows f({{use(kA, 1000)}, {use(kA, 1000)}});
  f.start(0, Time{0});
  f.start(1, Time{500});
  EXPECT_EQ(f.completion[0], 1500);
  f.finish(0, Time{1500});
  EXPECT_EQ(f.completion[1], 2000);
  EXPECT_TRUE(f.sharing->current(f.transfers[1], Time{2000}));
  EXPECT_FALSE(f.sharing->current(f.transfers[1], Time{2500}));  // announced first
}

// Needs 0.2, 0.5 and 1 of one link, 1.7 in all. Shares grow together: at 0.2 the first is at full
// speed; the others share the remaining 0.8, 0.4 each: rates 0.4 / 0.5 and 0.4 / 1.
TEST(LinkSharing, SmallNeedsAreMetFirst) {
  Flows f({{use(kA, 200)}, {use(kA, 500)}, {use(kA, 1000)}});
  for (std::size_t i = 0; i < 3; ++i) f.start(i, Time{0});
  EXPECT_EQ(f.completion[0], 1000);
  EXPECT_EQ(f.completion[1], 1250);
  EXPECT_EQ(f.completion[2], 2500);
}

// Equal are the shares of the tightest links, not the rates: needs 0.75 and 1 get 0.5 each.
TEST(LinkSharing, SharesAreEqualNotRates) {
  Flows f({{use(kA, 750)}, {use(kA, 1000)}});
  f.start(0, Time{0});
  f.start(1, Time{0});
  EXPECT_EQ(f.completion[0], 1500);
  EXPECT_EQ(f.completion[1], 2000);
}

// Flow 0 needs 0.5 of A and all of B, flow 1 all of A, flow 2 all of B. B is full first, at shares
// of 0.5: flows 0 and 2 have rate 1/2. Flow 0 then has 0.25 of A, and flow 1 grows to 0.75.
TEST(LinkSharing, WhatAFlowCannotUseElsewhereIsLeftToOthers) {
  Flows f({{use(kA, 500), use(kB, 1000)}, {use(kA, 1000)}, {use(kB, 1000)}});
  for (std::size_t i = 0; i < 3; ++i) f.start(i, Time{0});
  EXPECT_EQ(f.completion[0], 2000);
  EXPECT_EQ(f.completion[1], 1334);  // 1000 / 0.75, rounded up
  EXPECT_EQ(f.completion[2], 2000);
}

// 2000 bytes in 1000 ns over a link of 1 byte per ns: the link makes it twice as long.
TEST(LinkSharing, AFlowThatNeedsMoreThanALinkIsSlowedByIt) {
  Flows f({{use(kA, 2000)}});
  f.start(0, Time{0});
  EXPECT_EQ(f.completion[0], 2000);
}

// The first uses A from 5000 to 6000. What comes late, at 3000, finds A as it was then.
TEST(LinkSharing, ALateFlowInAGapIsAsIfItHadComeInTime) {
  Flows f({{use(kA, 700)}, {use(kA, 700)}}, true);
  f.start(0, Time{5000});
  f.finish(0, Time{6000});
  f.start(1, Time{3000});
  EXPECT_EQ(f.completion[1], 4000);
  f.finish(1, Time{4000});
  EXPECT_TRUE(f.sharing->in_order());
}

// At 4500 it would have slowed the first; while the first is there, its links are not as they were;
// and a narrow link that it shares makes others slower from then on.
TEST(LinkSharing, ALateFlowThatMeetsOthersIsOutOfOrder) {
  Flows overlapping({{use(kA, 700)}, {use(kA, 700)}}, true);
  overlapping.start(0, Time{5000});
  overlapping.finish(0, Time{6000});
  overlapping.start(1, Time{4500});
  overlapping.finish(1, Time{5500});
  EXPECT_FALSE(overlapping.sharing->in_order());

  Flows during({{use(kA, 700)}, {use(kA, 200)}}, true);
  during.start(0, Time{5000});
  during.start(1, Time{4500});
  EXPECT_FALSE(during.sharing->in_order());

  Flows narrow({{use(kA, 700)}, {use(kB, 100)}, {use(kA, 700)}}, true);
  narrow.start(0, Time{0});
  narrow.start(1, Time{500});
  EXPECT_TRUE(narrow.sharing->in_order());
  narrow.start(2, Time{200});
  EXPECT_FALSE(narrow.sharing->in_order());
}

}  // namespace
}  // namespace mllmsim
