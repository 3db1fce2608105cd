#include "sim/account/critical_path.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/kernel/predecessors.hpp"
#include "sim/kernel/simulation.hpp"

namespace mllmsim {
namespace {

class Walk {
 public:
  Walk(const Program& program, const Timeline& timeline)
      : program_(program),
        timeline_(timeline),
        predecessors_(program),
        members_(program.transfers().size()) {
    for (std::uint32_t t = 0; t < program.tasks().size(); ++t)
      if (const TransferId transfer = program.tasks()[t].transfer)
        members_[transfer.value].push_back({t});
  }

  std::vector<CriticalLink> walk() {
    std::vector<CriticalLink> path;
    for (TaskId at = last_task(); at;) {
      const TaskId late = latest_arrival(at);
      path.push_back({at, timeline_.start[at.value], timeline_.end[at.value]});
      if (timeline_.start[at.value] == Time{0}) break;
      at = cause(late);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  TaskId last_task() const {
    const auto& end = timeline_.end;
    const auto it = std::max_element(end.begin(), end.end());
    return it == end.end() ? TaskId{} : TaskId{static_cast<std::uint32_t>(it - end.begin())};
  }

  // Of the tasks that start together with this one, the one they all waited for.
  TaskId latest_arrival(TaskId task) const {
    const TransferId transfer = program_.tasks()[task.value].transfer;
    if (!transfer) return task;
    TaskId latest = task;
    for (const TaskId member : members_[transfer.value])
      if (timeline_.ready[member.value] > timeline_.ready[latest.value]) latest = member;
    return latest;
  }

  // The predecessor that made it ready.
  // Of several, the longest: a task of no length explains nothing.
  TaskId cause(TaskId task) const {
    TaskId found;
    Time longest{-1};
    for (const TaskId p : predecessors_.of(task)) {
      const Time length = timeline_.end[p.value] - timeline_.start[p.value];
      if (timeline_.end[p.value] != timeline_.ready[task.value] || length <= longest) continue;
      found = p;
      longest = length;
    }
    check(static_cast<bool>(found), "a task became ready when nothing ended");
    return found;
  }

  const Program& program_;
  const Timeline& timeline_;
  Predecessors predecessors_;
  std::vector<std::vector<TaskId>> members_;  // of each transfer
};

}  // namespace

std::vector<CriticalLink> critical_path(const Program& program, const Timeline& timeline) {
  return Walk(program, timeline).walk();
}

}  // namespace mllmsim
