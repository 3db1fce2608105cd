#include "sim/account/bubbles.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/kernel/predecessors.hpp"
#include "sim/kernel/simulation.hpp"

namespace mllmsim {
namespace {

std::optional<BubbleKind> kind_while_running(TaskKind kind) {
  switch (kind) {
    case TaskKind::tp_collective:
      return BubbleKind::tp;
    case TaskKind::dp_all_gather:
      return BubbleKind::dp_all_gather;
    case TaskKind::dp_reduce_scatter:
      return BubbleKind::dp_reduce_scatter;
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::recompute:
    case TaskKind::optimizer:
    case TaskKind::pp_send:
    case TaskKind::pp_recv:
    case TaskKind::sync:
    case TaskKind::host:
      return std::nullopt;
  }
  throw InternalError("unknown task kind");
}

class Accountant {
 public:
  Accountant(const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline), predecessors_(program), times_(program.devices()) {
    collect();
  }

  std::vector<DeviceTime> account() {
    for (std::uint32_t d = 0; d < program_.devices(); ++d) {
      account_device({d});
      check(times_[d].busy + times_[d].bubbles.total() == timeline_.span,
            "busy + bubbles differ from the step");
    }
    return std::move(times_);
  }

 private:
  struct Compute {
    std::vector<TaskId> tasks;  // in stream order
    Time first_start{}, last_backward_end{};
  };

  void collect() {
    compute_.resize(program_.devices());
    for (std::uint32_t t = 0; t < program_.tasks().size(); ++t) {
      const Task& task = program_.tasks()[t];
      if (Program::kind_of(task.stream) != StreamKind::compute || task.kind == TaskKind::host)
        continue;
      Compute& c = compute_[Program::device_of(task.stream).value];
      if (c.tasks.empty()) c.first_start = timeline_.start[t];
      if (task.kind == TaskKind::forward || task.kind == TaskKind::backward)
        c.last_backward_end = timeline_.end[t];
      c.tasks.push_back({t});
    }
  }

  void account_device(DeviceId d) {
    Time at{0};
    DeviceTime& out = times_[d.value];
    for (TaskId t : compute_[d.value].tasks) {
      if (timeline_.start[t.value] > at) explain_gap(d, at, timeline_.start[t.value], t);
      const Task& task = program_.tasks()[t.value];
      out.busy += task.duration - task.communication;
      out.bubbles[BubbleKind::tp] += task.communication;
      at = timeline_.end[t.value];
    }
    if (timeline_.span > at) explain_gap(d, at, timeline_.span, TaskId{});
  }

  // Splits [from, to) into intervals claimed by the device's own communication before `next`,
  // and the rest.
  void explain_gap(DeviceId d, Time from, Time to, TaskId next) {
    claims_.clear();
    if (next) claim(next, from, to);
    // Stable: whose claim comes first among equals must not depend on the library's sort.
    std::stable_sort(claims_.begin(), claims_.end(), [](const Bubble& a, const Bubble& b) {
      const auto waits = [](const Bubble& c) { return c.kind == BubbleKind::encoder_wait; };
      return a.start != b.start ? a.start < b.start : waits(a) < waits(b);
    });
    Time at = from;
    for (const Bubble& c : claims_) {
      if (c.end <= at) continue;
      if (c.start > at) add(d, {kind_by_place(d, at), at, c.start});
      add(d, {c.kind, std::max(at, c.start), c.end});
      at = c.end;
    }
    if (to > at) add(d, {kind_by_place(d, at), at, to});
  }

  void claim(TaskId waiting, Time from, Time to) {
    const DeviceId device = Program::device_of(program_.tasks()[waiting.value].stream);
    for (TaskId p : predecessors_.of(waiting)) {
      const Task& task = program_.tasks()[p.value];
      const bool own =
          Program::device_of(task.stream) == device &&
          (Program::kind_of(task.stream) != StreamKind::compute || task.kind == TaskKind::host);
      if (!own || timeline_.end[p.value] <= from) continue;
      const Time start = timeline_.start[p.value], ready = timeline_.ready[p.value];
      const StreamKind stream = Program::kind_of(task.stream);
      if (stream == StreamKind::encoder_recv_prev || stream == StreamKind::encoder_recv_next)
        claims_.push_back({BubbleKind::encoder_wait, from, std::min(to, timeline_.end[p.value])});
      if (const auto kind = kind_while_running(task.kind)) {
        claims_.push_back({*kind, std::max(from, start), std::min(to, timeline_.end[p.value])});
        if (start > std::max(from, ready))
          claims_.push_back({BubbleKind::dp_wait, std::max(from, ready), start});
      }
      claim(p, from, to);
    }
  }

  BubbleKind kind_by_place(DeviceId d, Time at) const {
    const Compute& c = compute_[d.value];
    if (c.tasks.empty() || at < c.first_start) return BubbleKind::pp_warmup;
    return at >= c.last_backward_end ? BubbleKind::pp_cooldown : BubbleKind::pp_other;
  }

  void add(DeviceId d, Bubble bubble) {
    times_[d.value].bubbles[bubble.kind] += bubble.end - bubble.start;
    times_[d.value].gaps.push_back(bubble);
  }

  const Program& program_;
  const Timeline& timeline_;
  Predecessors predecessors_;
  std::vector<Compute> compute_;
  std::vector<Bubble> claims_;
  std::vector<DeviceTime> times_;
};

}  // namespace

std::vector<DeviceTime> account(const Program& program, const Timeline& timeline) {
  return Accountant(program, timeline).account();
}

}  // namespace mllmsim
