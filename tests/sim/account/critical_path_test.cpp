// The chain of tasks that makes a step as long as it is, on programs of a few tasks.
#include "sim/account/critical_path.hpp"

#include <gtest/gtest.h>

#include "sim/kernel/simulation.hpp"
#include "tests/sim/task.hpp"

namespace mllmsim {
namespace {

std::vector<TaskId> tasks_of(const std::vector<CriticalLink>& path) {
  std::vector<TaskId> out;
  for (const CriticalLink& link : path) out.push_back(link.task);
  return out;
}

//   device 0: [a 3][b 4]
//   device 1: [---c 5---][d 3]     d waits for c and for a: c, which ended later, is the cause
TEST(CriticalPath, FollowsTheLastPredecessor) {
  Program p(2);
  const TaskId a = p.add(task(0, StreamKind::compute, 3));
  p.add(task(0, StreamKind::compute, 4));
  const TaskId c = p.add(task(1, StreamKind::compute, 5));
  const TaskId d = p.add(task(1, StreamKind::compute, 3));
  p.add_dependency(a, d);
  EXPECT_EQ(tasks_of(critical_path(p, simulate(p, {}))), (std::vector<TaskId>{c, d}));
}

//   device 0: [a 3]      [sync 2][e 4]
//   device 1: [----b 7---][sync 2]       e's chain crosses to device 1, which arrived last
TEST(CriticalPath, CrossesToTheParticipantThatArrivedLast) {
  Program p(2);
  p.add(task(0, StreamKind::dp, 3));
  const TaskId b = p.add(task(1, StreamKind::dp, 7));
  Task sync = task(0, StreamKind::dp, 2);
  sync.transfer = p.add_transfer();
  const TaskId early = p.add(sync);
  sync.stream = Program::stream({1}, StreamKind::dp);
  p.add(sync);
  const TaskId e = p.add(task(0, StreamKind::dp, 4));
  EXPECT_EQ(tasks_of(critical_path(p, simulate(p, {}))), (std::vector<TaskId>{b, early, e}));
}

// Whatever the program, the links cover the step without gaps.
TEST(CriticalPath, CoversTheStep) {
  Program p(3);
  std::vector<TaskId> last;
  for (int i = 0; i < 30; ++i) {
    const auto device = static_cast<std::uint32_t>(i % 3);
    const TaskId t = p.add(task(device, StreamKind::compute, i * 7 % 5));
    for (std::size_t k = 2; k < 5 && k < last.size(); ++k)
      p.add_dependency(last[last.size() - k], t);
    last.push_back(t);
  }
  const Timeline timeline = simulate(p, {});
  Time at{0};
  for (const CriticalLink& link : critical_path(p, timeline)) {
    EXPECT_EQ(link.start, at);
    at = link.end;
  }
  EXPECT_EQ(at, timeline.span);
}

}  // namespace
}  // namespace mllmsim
