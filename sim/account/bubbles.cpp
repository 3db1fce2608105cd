#include "sim/account/bubbles.hpp"

#include "sim/account/gap_claims.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
std::optional<BubbleKind> GapClaims::kind_while_running(TaskKind kind) {
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

namespace {

class Accountant {
 public:
  Accountant(const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline), claims_(program), times_(program.devices()) {
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
    claims_.begin(from, to);
    if (next) claims_.add_before(next, timeline_, [](GroupId) {});
    claims_.lay_out([&](Time at) { return kind_by_place(d, at); },
                    [&](const Bubble& bubble) { add(d, bubble); });
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
  GapClaims claims_;
  std::vector<Compute> compute_;
  std::vector<DeviceTime> times_;
};

}  // namespace

std::vector<DeviceTime> account(const Program& program, const Timeline& timeline) {
  return Accountant(program, timeline).account();
}

}  // namespace mllmsim
