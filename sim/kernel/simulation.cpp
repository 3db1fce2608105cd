#include "sim/kernel/simulation.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "sim/kernel/event_queue.hpp"
#include "sim/kernel/link_sharing.hpp"

namespace mllmsim {
namespace {

constexpr Time kNever{-1};

// Successors of each task (dependencies only) in compressed rows.
struct Successors {
  explicit Successors(const Program& program) : first(program.tasks().size() + 1, 0) {
    for (const Program::Edge& e : program.dependencies()) ++first[e.before.value + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    targets.resize(program.dependencies().size());
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    for (const Program::Edge& e : program.dependencies()) targets[at[e.before.value]++] = e.after;
  }
  std::span<const TaskId> of(std::uint32_t task) const {
    return std::span(targets).subspan(first[task], first[task + 1] - first[task]);
  }
  std::vector<std::uint32_t> first;
  std::vector<TaskId> targets;
};

class Run {
 public:
  Run(const Program& program, const std::vector<BytesPerSecond>& bandwidths)
      : program_(program),
        successors_(program),
        links_(bandwidths, program),
        waiting_for_(program.tasks().size(), 0),
        arrived_(program.transfers().size(), 0),
        first_member_(program.transfers().size()),
        next_member_(program.tasks().size()) {
    timeline_.ready.assign(program.tasks().size(), kNever);
    timeline_.start.assign(program.tasks().size(), kNever);
    timeline_.end.assign(program.tasks().size(), kNever);
    for (const Program::Edge& e : program.dependencies()) ++waiting_for_[e.after.value];
    for (std::uint32_t t = 0; t < program.tasks().size(); ++t) {
      if (const TaskId next = program.next_on_stream({t})) ++waiting_for_[next.value];
      if (const TransferId tr = program.tasks()[t].transfer)
        next_member_[t] = std::exchange(first_member_[tr.value], TaskId{t});
    }
  }

  Timeline run() {
    for (std::uint32_t t = 0; t < waiting_for_.size(); ++t)
      if (waiting_for_[t] == 0) task_ready({t}, Time{0});
    while (!queue_.empty()) {
      const Event e = queue_.pop();
      switch (e.phase) {
        case Phase::transfer_done:
          transfer_done({e.index}, e.time);
          break;
        case Phase::task_done:
          task_done({e.index}, e.time);
          break;
      }
    }
    return std::move(timeline_);
  }

 private:
  void task_ready(TaskId id, Time now) {
    const Task& task = program_.tasks()[id.value];
    timeline_.ready[id.value] = now;
    if (!task.transfer) {
      timeline_.start[id.value] = now;
      queue_.push(now + task.duration, Phase::task_done, id.value);
      return;
    }
    const std::uint32_t t = task.transfer.value;
    if (++arrived_[t] < program_.transfers()[t].participants) return;
    for (TaskId m = first_member_[t]; m; m = next_member_[m.value]) timeline_.start[m.value] = now;
    announce(links_.start(task.transfer, now, task.duration));
  }

  void announce(std::span<const LinkSharing::Completion> completions) {
    for (const auto& c : completions) queue_.push(c.time, Phase::transfer_done, c.transfer.value);
  }

  void transfer_done(TransferId id, Time now) {
    const bool over = timeline_.end[first_member_[id.value].value] != kNever;
    if (over || !links_.current(id, now)) return;  // its rate changed since this was announced
    announce(links_.finish(id, now));
    for (TaskId m = first_member_[id.value]; m; m = next_member_[m.value]) task_done(m, now);
  }

  void task_done(TaskId id, Time now) {
    check(timeline_.end[id.value] == kNever, "a task ended twice");
    timeline_.end[id.value] = now;
    timeline_.span = std::max(timeline_.span, now);
    const auto release = [&](TaskId next) {
      if (--waiting_for_[next.value] == 0) task_ready(next, now);
    };
    if (const TaskId next = program_.next_on_stream(id)) release(next);
    for (TaskId next : successors_.of(id.value)) release(next);
  }

  const Program& program_;
  Successors successors_;
  LinkSharing links_;
  EventQueue queue_;
  std::vector<std::uint32_t> waiting_for_;
  std::vector<std::uint32_t> arrived_;
  std::vector<TaskId> first_member_, next_member_;  // the tasks of each transfer, as linked lists
  Timeline timeline_;
};

std::string describe(const Program& program, TaskId id) {
  const Task& t = program.tasks()[id.value];
  return fmt::format("{} on {} of device {} (micro-batch {}, chunk {})", name_of(t.kind),
                     name_of(Program::kind_of(t.stream)), Program::device_of(t.stream).value,
                     t.micro_batch, t.chunk);
}

void check_run(const Program& program, const Timeline& timeline) {
  for (std::uint32_t t = 0; t < program.tasks().size(); ++t)
    if (timeline.end[t] == kNever)
      throw InternalError("never ran, dependencies form a cycle: " + describe(program, {t}));
  std::int64_t sent = 0, received = 0, memory = 0;
  for (std::uint32_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    check(timeline.end[t] - timeline.start[t] >= task.duration, "a task was cut short");
    if (const TaskId next = program.next_on_stream({t}))
      check(timeline.start[next.value] >= timeline.end[t], "a stream overlaps itself");
    if (task.kind == TaskKind::pp_send) sent += task.bytes.value;
    if (task.kind == TaskKind::pp_recv) received += task.bytes.value;
    memory += task.memory_at_start + task.memory_at_end;
  }
  for (const Program::Edge& e : program.dependencies())
    check(timeline.start[e.after.value] >= timeline.end[e.before.value],
          "a task started before its predecessor ended");
  check(sent == received, "bytes sent and bytes received differ");
  check(memory == 0, "activations were not freed");
}

}  // namespace

Timeline simulate(const Program& program, const std::vector<BytesPerSecond>& bandwidths) {
  Timeline timeline = Run(program, bandwidths).run();
  check_run(program, timeline);
  return timeline;
}

}  // namespace mllmsim
