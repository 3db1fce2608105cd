// The event kernel against a plain one, on random programs: only transfers that load links are
// events, only flows that contended links join are solved, and links that never decide are left
// out. None of that may be seen in a result.
#include "tests/sim/kernel/plain_simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/kernel/link_sharing.hpp"
#include "sim/kernel/route_links.hpp"

namespace mllmsim {
namespace {

struct RandomProgram {
  Program program{4};
  std::vector<BytesPerSecond> bandwidths;
};

// A few devices, tasks in random order on their streams, dependencies forward only, transfers of
// one to three participants over random links.
RandomProgram random_program() {
  const auto upto = [](int n) { return *rc::gen::inRange(0, n); };
  RandomProgram out;
  for (int l = 0, n = 1 + upto(6); l < n; ++l) out.bandwidths.push_back({(1 + upto(4)) * 0.5e9});
  std::vector<RouteId> routes(1);  // none
  for (int r = 0, n = upto(5); r < n; ++r) {
    std::vector<LinkUse> uses;
    for (std::uint32_t l = 0; l < out.bandwidths.size(); ++l)
      if (upto(2) == 0) uses.push_back({{l}, Bytes{1 + upto(8)}});
    routes.push_back(out.program.add_route(uses));
  }
  const auto add = [&](std::uint32_t device, Time duration, TransferId transfer) {
    Task task;
    task.stream = Program::stream({device}, static_cast<StreamKind>(upto(3)));
    task.duration = duration;
    task.transfer = transfer;
    const TaskId id = out.program.add(task);
    if (id.value > 0 && upto(2) == 0)
      out.program.add_dependency({static_cast<std::uint32_t>(upto(static_cast<int>(id.value)))},
                                 id);
  };
  for (int n = 3 + upto(30); n > 0; --n) {
    const Time duration{upto(5) == 0 ? 0 : 1 + upto(1000)};
    if (upto(2) == 0) {
      add(static_cast<std::uint32_t>(upto(4)), duration, {});
      continue;
    }
    const RouteId route = routes[static_cast<std::size_t>(upto(static_cast<int>(routes.size())))];
    const TransferId transfer = out.program.add_transfer(route, 50.0 * (1 + upto(20)));
    // On devices of their own: participants of one stream would wait for each other.
    for (int k = 0, members = 1 + upto(3); k < members; ++k)
      add(static_cast<std::uint32_t>(k), duration, transfer);
  }
  return out;
}

RC_GTEST_PROP(EventKernel, SimulatesWhatAPlainOneDoes, ()) {
  const RandomProgram random = random_program();
  const Timeline expected = PlainSimulation(random.program, random.bandwidths).run();
  if (std::ranges::find(expected.end, Time{-1}) != expected.end.end()) RC_DISCARD("a cycle");
  const Timeline found = simulate(random.program, random.bandwidths);
  RC_ASSERT(found.ready == expected.ready);
  RC_ASSERT(found.start == expected.start);
  RC_ASSERT(found.end == expected.end);
  RC_ASSERT(found.span == expected.span);
}

// Links 0 and 1 carry the same two routes, 1 at half the bandwidth: it decides. Link 2 has a route
// of its own.
TEST(RouteLinks, OfLinksWithTheSameRoutesTheTightestIsKept) {
  Program program(1);
  const std::vector<LinkUse> both{{{0}, Bytes{10}}, {{1}, Bytes{10}}, {{2}, Bytes{10}}};
  const RouteId a = program.add_route(both);
  const RouteId b = program.add_route(std::span(both).first(2));
  const RouteLinks links({{2e9}, {1e9}, {1e9}}, program);
  EXPECT_EQ(links.links(), 2U);
  ASSERT_EQ(links.of(a).size(), 2U);
  ASSERT_EQ(links.of(b).size(), 1U);
  EXPECT_EQ(links.of(b).front().bandwidth, BytesPerSecond{1e9});
}

// The first route is tighter on link 0, the second on link 1: each may decide.
TEST(RouteLinks, LinksThatMayEachBeTheTightestAreKept) {
  Program program(1);
  const std::vector<LinkUse> first{{{0}, Bytes{20}}, {{1}, Bytes{10}}},
      second{{{0}, Bytes{10}}, {{1}, Bytes{20}}};
  program.add_route(first);
  program.add_route(second);
  EXPECT_EQ(RouteLinks({{1e9}, {1e9}}, program).links(), 2U);
}

// Two pairs of flows on two links: an event of one pair does not solve the other.
TEST(LinkSharing, OnlyFlowsOnContendedLinksOfTheChangeAreSolved) {
  Program program(1);
  std::vector<TransferId> transfers;
  for (std::uint32_t link : {0U, 0U, 1U, 1U, 2U}) {
    const LinkUse use{{link}, Bytes{1000}};
    transfers.push_back(program.add_transfer(std::span(&use, 1)));
  }
  const RouteLinks links(std::vector<BytesPerSecond>(3, {1e9}), program);
  LinkSharing sharing(links, program);
  for (const TransferId t : transfers) sharing.start(t, Time{0}, Time{1000});
  EXPECT_EQ(sharing.statistics().solved, 2U);  // by the second flow on each of two links
  EXPECT_EQ(sharing.statistics().solved_flows, 4U);
  sharing.finish(transfers[4], Time{1000});
  EXPECT_EQ(sharing.statistics().solved, 2U);
  sharing.finish(transfers[0], Time{2000});
  EXPECT_EQ(sharing.statistics().solved_flows, 5U);  // the other on its link
}

}  // namespace
}  // namespace mllmsim
