#include "sim/account/event_digest.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

// Two tasks, one after the other, on one device.
struct Step {
  Program program{1};
  Timeline timeline;

  explicit Step(Time second, TaskKind kind = TaskKind::backward, Bytes bytes = {}) {
    Task task;
    task.stream = Program::stream({0}, StreamKind::compute);
    task.duration = Time{10};
    program.add(task);
    task.duration = second;
    task.kind = kind;
    task.bytes = bytes;
    program.add(task);
    timeline = simulate(program, {});
  }
  std::uint64_t digest() const { return event_digest(program, timeline); }
};

TEST(EventDigest, IsTheSameForTheSameEvents) {
  EXPECT_EQ(Step(Time{20}).digest(), Step(Time{20}).digest());
}

TEST(EventDigest, ChangesWithEachPartOfAnEvent) {
  const std::uint64_t digest = Step(Time{20}).digest();
  EXPECT_NE(Step(Time{21}).digest(), digest);
  EXPECT_NE(Step(Time{20}, TaskKind::forward).digest(), digest);
  EXPECT_NE(Step(Time{20}, TaskKind::backward, Bytes{1}).digest(), digest);
}

// Results of different machines and versions are compared by it: a change here makes all digests
// new.
TEST(EventDigest, IsTheSameEverywhere) { EXPECT_EQ(Step(Time{20}).digest(), 0xa2616841bd09b9acU); }

// Events known in a row, added at a time, are as if each was added then.
TEST(EventDigest, OfARowIsThatOfItsEvents) {
  StreamDigest::Row row;
  StreamDigest one_by_one, together;
  Time at{};
  for (const std::int64_t length : {7, 0, 12}) {
    row.add(TaskKind::recompute, at, at + Time{length});
    at += Time{length};
  }
  for (StreamDigest* digest : {&one_by_one, &together})
    digest->add(TaskKind::forward, Time{1}, Time{5}, Bytes{3});
  for (const std::int64_t from : {100, 1'000'000'007}) {
    Time start{from};
    for (const std::int64_t length : {7, 0, 12}) {
      one_by_one.add(TaskKind::recompute, start, start + Time{length});
      start += Time{length};
    }
    together.add(row, Time{from});
  }
  EXPECT_EQ(together.value(), one_by_one.value());
}

}  // namespace
}  // namespace mllmsim
