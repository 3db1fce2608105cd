// The event kernel on programs of a few tasks, with times worked out by hand.
#include "sim/kernel/simulation.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "tests/sim/task.hpp"

namespace mllmsim {
namespace {

TEST(Simulation, AStreamRunsItsTasksInOrder) {
  Program p(1);
  p.label("x");
  p.add(task(0, StreamKind::compute, 3));
  const TaskId second = p.add(task(0, StreamKind::compute, 4));
  EXPECT_EQ(simulate(p, {}).start[second.value], Time{3});
}

TEST(Simulation, ATaskWaitsForItsLastPredecessor) {
  Program p(3);
  const TaskId a = p.add(task(0, StreamKind::compute, 3)),
               b = p.add(task(1, StreamKind::compute, 5));
  const TaskId c = p.add(task(2, StreamKind::compute, 1));
  p.add_dependency(a, c);
  p.add_dependency(b, c);
  EXPECT_EQ(simulate(p, {}).span, Time{6});
}

//   device 0: [--3--][sync 2]          both sides of the transfer start when the later one arrives
//   device 1: [-----7-----][sync 2]
TEST(Simulation, ACollectiveStartsWithItsLastParticipant) {
  Program p(2);
  p.add(task(0, StreamKind::dp, 3));
  p.add(task(1, StreamKind::dp, 7));
  Task sync = task(0, StreamKind::dp, 2);
  sync.transfer = p.add_transfer();
  const TaskId early = p.add(sync);
  sync.stream = Program::stream({1}, StreamKind::dp);
  p.add(sync);
  const Timeline t = simulate(p, {});
  EXPECT_EQ(t.ready[early.value], Time{3});
  EXPECT_EQ(t.start[early.value], Time{7});
  EXPECT_EQ(t.span, Time{9});
}

// A link of 1 byte/ns. Two transfers of 100 bytes that take 100 ns alone start together: each gets
// half the link and ends at 200. A third of 50 bytes from t = 200 on has the link alone.
TEST(Simulation, TransfersOnOneLinkShareIt) {
  Program p(3);
  const LinkUse use{{0}, Bytes{100}};
  std::vector<TaskId> ids;
  for (std::uint32_t d = 0; d < 2; ++d) {
    Task t = task(d, StreamKind::dp, 100);
    t.transfer = p.add_transfer(std::span(&use, 1));
    ids.push_back(p.add(t));
  }
  const LinkUse half{{0}, Bytes{50}};
  Task third = task(2, StreamKind::dp, 50);
  third.transfer = p.add_transfer(std::span(&half, 1));
  const TaskId last = p.add(third);
  p.add_dependency(ids[0], last);
  const Timeline t = simulate(p, {BytesPerSecond{1e9}});
  EXPECT_EQ(t.end[ids[0].value], Time{200});
  EXPECT_EQ(t.end[ids[1].value], Time{200});
  EXPECT_EQ(t.end[last.value], Time{250});
}

// The second starts 60 ns later: the first has 40 ns of work left, which takes 80 at half speed
// (ends at 140); by then the second has done 40 of its 100 and ends 60 later, at 200.
TEST(Simulation, SharingLastsOnlyWhileBothRun) {
  Program p(2);
  const LinkUse use{{0}, Bytes{100}};
  Task t = task(0, StreamKind::dp, 100);
  t.transfer = p.add_transfer(std::span(&use, 1));
  const TaskId first = p.add(t);
  const TaskId wait = p.add(task(1, StreamKind::compute, 60));
  t.stream = Program::stream({1}, StreamKind::dp);
  t.transfer = p.add_transfer(std::span(&use, 1));
  const TaskId second = p.add(t);
  p.add_dependency(wait, second);
  const Timeline timeline = simulate(p, {BytesPerSecond{1e9}});
  EXPECT_EQ(timeline.end[first.value], Time{140});
  EXPECT_EQ(timeline.end[second.value], Time{200});
}

// A transfer that needs only 30 % of a link has it; the other, which wants all, gets the remaining
// 70 % until the first ends at 100. It has done 70 of its 100 then and ends at 130.
TEST(Simulation, BandwidthIsSharedMaxMinFairly) {
  Program p(2);
  const LinkUse small{{0}, Bytes{30}}, large{{0}, Bytes{100}};
  Task t = task(0, StreamKind::dp, 100);
  t.transfer = p.add_transfer(std::span(&small, 1));
  const TaskId a = p.add(t);
  t.stream = Program::stream({1}, StreamKind::dp);
  t.transfer = p.add_transfer(std::span(&large, 1));
  const TaskId b = p.add(t);
  const Timeline timeline = simulate(p, {BytesPerSecond{1e9}});
  EXPECT_EQ(timeline.end[a.value], Time{100});
  EXPECT_EQ(timeline.end[b.value], Time{130});
}

void expect_internal_error(const Program& p, const std::string& part) {
  try {
    simulate(p, {});
    FAIL() << "expected an InternalError";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Simulation, ACycleIsReportedByName) {
  Program p(2);
  p.label("x");
  const TaskId a = p.add(task(0, StreamKind::compute, 1)),
               b = p.add(task(1, StreamKind::compute, 1));
  p.add_dependency(a, b);
  p.add_dependency(b, a);
  expect_internal_error(p, "forward on compute of device 0");
}

// The first task did run: that its stream's next never did is no overlap.
TEST(Simulation, ACycleBehindATaskIsReportedAsACycle) {
  Program p(1);
  p.add(task(0, StreamKind::compute, 1));
  const TaskId a = p.add(task(0, StreamKind::compute, 1)), b = p.add(task(0, StreamKind::tp, 1));
  p.add_dependency(a, b);
  p.add_dependency(b, a);
  expect_internal_error(p, "form a cycle");
}

TEST(Simulation, LostBytesAndLostMemoryAreNoticed) {
  Program bytes(1);
  Task t = task(0, StreamKind::pp_send_next, 1);
  t.kind = TaskKind::pp_send;
  t.bytes = Bytes{8};
  bytes.add(t);
  EXPECT_THROW(simulate(bytes, {}), InternalError);
  Program memory(1);
  t = task(0, StreamKind::compute, 1);
  t.memory_at_start = 8;
  memory.add(t);
  EXPECT_THROW(simulate(memory, {}), InternalError);
}

}  // namespace
}  // namespace mllmsim
