// What claims an idle stretch of a compute stream: the device's own communication before the task
// that comes next. Private to this folder.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/account/bubbles.hpp"
#include "sim/kernel/predecessors.hpp"
#include "sim/kernel/simulation.hpp"

namespace mllmsim {

class GapClaims {
 public:
  explicit GapClaims(const Program& program) : program_(program), predecessors_(program) {}

  void begin(Time from, Time to) {
    from_ = from;
    to_ = to;
    claims_.clear();
  }
  Time from() const { return from_; }
  void add(BubbleKind kind, Time start, Time end) {
    claims_.push_back({kind, std::max(from_, start), std::min(to_, end)});
  }

  // Of all that the task waited for, and what that waited for. Groups of kernels are left to
  // `of_group`, but for the one before on the stream: its last kernel may be on another.
  template <class OfGroup>
  void add_before(TaskId waiting, const Timeline& timeline, const OfGroup& of_group) {
    const DeviceId device = Program::device_of(program_.tasks()[waiting.value].stream);
    std::span<const TaskId> before = predecessors_.of(waiting);
    if (!before.empty() && program_.next_on_stream(before.back()) == waiting &&
        program_.tasks()[before.back().value].group)
      before = before.first(before.size() - 1);
    for (const TaskId p : before) {
      const Task& task = program_.tasks()[p.value];
      if (Program::device_of(task.stream) != device) continue;
      if (task.group) {
        of_group(task.group);
        continue;
      }
      const StreamKind stream = Program::kind_of(task.stream);
      const bool own = stream != StreamKind::compute || task.kind == TaskKind::host;
      const Time end = timeline.end[p.value];
      if (!own || end <= from_) continue;
      const Time start = timeline.start[p.value], ready = timeline.ready[p.value];
      if (stream == StreamKind::encoder_recv_prev || stream == StreamKind::encoder_recv_next)
        add(BubbleKind::encoder_wait, from_, end);
      if (const auto kind = kind_while_running(task.kind)) {
        add(*kind, start, end);
        if (start > std::max(from_, ready))
          claims_.push_back({BubbleKind::dp_wait, std::max(from_, ready), start});
      }
      add_before(p, timeline, of_group);
    }
  }

  // Calls take(bubble) for each part of the gap; kind_at(time) says what nobody claims.
  template <class KindAt, class Take>
  void lay_out(const KindAt& kind_at, const Take& take) {
    // Stable: whose claim comes first among equals must not depend on the library's sort.
    std::stable_sort(claims_.begin(), claims_.end(), [](const Bubble& a, const Bubble& b) {
      const auto waits = [](const Bubble& c) { return c.kind == BubbleKind::encoder_wait; };
      return a.start != b.start ? a.start < b.start : waits(a) < waits(b);
    });
    Time at = from_;
    for (const Bubble& c : claims_) {
      if (c.end <= at) continue;
      if (c.start > at) take(Bubble{kind_at(at), at, c.start});
      take(Bubble{c.kind, std::max(at, c.start), c.end});
      at = c.end;
    }
    if (to_ > at) take(Bubble{kind_at(at), at, to_});
  }

 private:
  static std::optional<BubbleKind> kind_while_running(TaskKind kind);

  const Program& program_;
  Predecessors predecessors_;
  Time from_{}, to_{};
  std::vector<Bubble> claims_;
};

}  // namespace mllmsim
