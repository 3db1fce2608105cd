#include "sim/kernel/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/kernel/event_queue.hpp"
#include "sim/kernel/link_sharing.hpp"

namespace mllmsim {
namespace {

constexpr Time kNever{-1};
constexpr Time kOfKernels{-2};  // in place of a duration: who runs groups knows it

std::string describe(const Program& program, TaskId id) {
  const Task& t = program.tasks()[id.value];
  return fmt::format("{} on {} of device {} (micro-batch {}, chunk {})", name_of(t.kind),
                     name_of(Program::kind_of(t.stream)), Program::device_of(t.stream).value,
                     t.micro_batch, t.chunk);
}

class Run {
 public:
  Run(const Program& program, const RouteLinks& links, GroupRunner* runner)
      : program_(program),
        runner_(runner),
        links_(links, program, runner != nullptr),
        arriving_(program.transfers().size()) {
    const std::size_t tasks = program.tasks().size();
    waiting_.reserve(tasks);
    for (std::size_t t = 0; t < tasks; ++t) {
      const Task& task = program.tasks()[t];
      const Program::Node& node = program.nodes()[t];
      waiting_.push_back({task.group ? kOfKernels : task.duration, Time{0}, task.transfer,
                          node.next_on_stream, node.first_dependency, node.predecessors});
    }
    for (std::size_t t = 0; t < arriving_.size(); ++t)
      arriving_[t].missing = program.transfers()[t].participants;
    if (runner_) timeline_.ready.resize(tasks);
    timeline_.start.resize(tasks);
    timeline_.end.assign(tasks, kNever);
  }

  // Whether all was simulated in the order of time.
  bool run() {
    for (std::uint32_t t = 0; t < waiting_.size(); ++t)
      if (program_.nodes()[t].predecessors == 0) task_ready({t});
    propagate();
    while (!queue_.empty() && links_.in_order()) {
      const Event e = queue_.pop();
      switch (e.phase) {
        case Phase::transfer_done:
          transfer_done({e.transfer}, e.time);
          break;
        case Phase::transfer_start:
          announce(links_.start({e.transfer}, e.time, duration_of({e.transfer})));
          break;
      }
    }
    if (runner_ && (!links_.in_order() || !all_ran())) return false;
    check_all_ran();
    check_order();
    check(program_.bytes_sent() == program_.bytes_received(),
          "bytes sent and bytes received differ");
    check(program_.memory_left() == 0, "activations were not freed");
    if (runner_) return true;
    timeline_.ready.reserve(waiting_.size());
    for (const Waiting& w : waiting_) timeline_.ready.push_back(w.ready);
    return true;
  }
  Timeline& timeline() { return timeline_; }

 private:
  // All that is read and written of a task on the way, side by side.
  struct Waiting {
    Time duration;
    Time ready;  // when the last of its predecessors so far was done
    TransferId transfer;
    TaskId next_on_stream;
    std::uint32_t first_dependency;
    std::uint32_t predecessors;  // that are not done
  };
  static_assert(sizeof(Waiting) == 32);

  struct Arriving {
    Time last{0};  // of its participants so far
    std::uint32_t missing = 0;
  };

  Time duration_of(TransferId id) const {
    return waiting_[program_.transfers()[id.value].last_member.value].duration;
  }

  void task_ready(TaskId id) {
    const Waiting& task = waiting_[id.value];
    if (!task.transfer) {
      if (task.duration == kOfKernels) return run_group(id);
      return task_done(id, task.ready, task.ready + task.duration);
    }
    Arriving& arriving = arriving_[task.transfer.value];
    arriving.last = std::max(arriving.last, task.ready);
    if (--arriving.missing > 0) return;
    if (links_.loads(task.transfer, task.duration)) {
      queue_.push(arriving.last, Phase::transfer_start, task.transfer.value);
    } else {
      transfer_over(task.transfer, arriving.last + task.duration);
    }
  }

  void run_group(TaskId id) {
    const GroupRunner::Ran ran = runner_->run(id, waiting_[id.value].ready, timeline_);
    timeline_.span = std::max(timeline_.span, ran.latest);
    task_done(id, ran.start, ran.end);
    if (const TaskId next = waiting_[id.value].next_on_stream; next && !of_kernels(next))
      waiting_[next.value].ready = std::max(waiting_[next.value].ready, ran.compute_free);
  }
  bool of_kernels(TaskId id) const { return waiting_[id.value].duration == kOfKernels; }

  void announce(std::span<const LinkSharing::Completion> completions) {
    for (const auto& c : completions) queue_.push(c.time, Phase::transfer_done, c.transfer.value);
  }

  void transfer_done(TransferId id, Time now) {
    if (!links_.current(id, now)) return;  // its rate changed since this was announced
    announce(links_.finish(id, now));
    transfer_over(id, now);
    propagate();
  }

  void transfer_over(TransferId id, Time now) {
    const Time start = arriving_[id.value].last;
    for (TaskId m = program_.transfers()[id.value].last_member; m;
         m = program_.nodes()[m.value].previous_member)
      task_done(m, start, now);
  }

  void task_done(TaskId id, Time start, Time end) {
    check(timeline_.end[id.value] == kNever, "a task ended twice");
    if (runner_) timeline_.ready[id.value] = waiting_[id.value].ready;
    timeline_.start[id.value] = start;
    timeline_.end[id.value] = end;
    timeline_.span = std::max(timeline_.span, end);
    done_.push_back(id);
  }

  // Releases what waits for tasks that are done, and so on, as far as no links are in between.
  void propagate() {
    for (std::size_t i = 0; i < done_.size(); ++i) {
      const TaskId id = done_[i];
      const Time now = timeline_.end[id.value];
      const Waiting& task = waiting_[id.value];
      // Who runs groups knows when streams are free; the next is only the next.
      if (task.next_on_stream)
        release(task.next_on_stream, task.duration == kOfKernels ? Time{0} : now);
      for (std::uint32_t e = task.first_dependency; e != Program::kNoEdge;) {
        const Program::Edge& edge = program_.dependencies()[e];
        release(edge.after, now);
        e = edge.next;
      }
    }
    done_.clear();
  }

  void release(TaskId next, Time now) {
    Waiting& task = waiting_[next.value];
    task.ready = std::max(task.ready, now);
    if (--task.predecessors == 0) task_ready(next);
  }

  bool all_ran() const { return std::ranges::find(timeline_.end, kNever) == timeline_.end.end(); }
  void check_all_ran() const {
    const auto never = std::ranges::find(timeline_.end, kNever);
    if (never == timeline_.end.end()) return;
    const TaskId task{static_cast<std::uint32_t>(never - timeline_.end.begin())};
    throw InternalError("never ran, dependencies form a cycle: " + describe(program_, task));
  }

  void check_order() const {
    const std::vector<Time>&start = timeline_.start, &end = timeline_.end;
    for (std::size_t t = 0; t < waiting_.size(); ++t) {
      if (of_kernels({static_cast<std::uint32_t>(t)})) continue;  // see who runs them
      check(end[t] - start[t] >= waiting_[t].duration, "a task was cut short");
      if (const TaskId next = waiting_[t].next_on_stream)
        check(start[next.value] >= end[t], "a stream overlaps itself");
    }
    for (const Program::Edge& e : program_.dependencies())
      check(start[e.after.value] >= end[e.before.value],
            "a task started before its predecessor ended");
  }

  const Program& program_;
  GroupRunner* runner_;
  LinkSharing links_;
  EventQueue queue_;
  std::vector<Waiting> waiting_;    // by task
  std::vector<Arriving> arriving_;  // by transfer
  std::vector<TaskId> done_;        // whose successors are still to be released
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Program& program, const RouteLinks& links) {
  Run run(program, links, nullptr);
  run.run();
  return std::move(run.timeline());
}

Timeline simulate(const Program& program, const std::vector<BytesPerSecond>& bandwidths) {
  return simulate(program, RouteLinks(bandwidths, program));
}

std::optional<Timeline> simulate_groups(const Program& program, const RouteLinks& links,
                                        GroupRunner& runner) {
  Run run(program, links, &runner);
  if (!run.run()) return std::nullopt;
  return std::move(run.timeline());
}

}  // namespace mllmsim
