#include "strategies/run/path_parts.hpp"

#include <map>

#include "sim/account/critical_path.hpp"

namespace mllmsim::run {

std::vector<PathPart> path_parts(const Program& program, const Timeline& timeline, int ranks) {
  std::map<std::pair<int, TaskKind>, Time> sums;
  for (const CriticalLink& link : critical_path(program, timeline)) {
    const Task& task = program.tasks()[link.task.value];
    const int stage = static_cast<int>(Program::device_of(task.stream).value) % ranks;
    const auto add = [&](TaskKind kind, Time time) {
      if (time.value > 0) sums[{stage, kind}] += time;
    };
    add(TaskKind::tp_collective, task.communication);
    add(TaskKind::recompute, task.recompute);
    add(task.kind == TaskKind::pp_recv ? TaskKind::pp_send : task.kind,
        link.end - link.start - task.communication - task.recompute);
  }
  std::vector<PathPart> parts;
  for (const auto& [key, time] : sums) parts.push_back({key.first, key.second, to_seconds(time)});
  return parts;
}

}  // namespace mllmsim::run
