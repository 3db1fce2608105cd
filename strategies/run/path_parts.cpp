#include "strategies/run/path_parts.hpp"

#include <map>

#include "sim/account/critical_path.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::run {
namespace {

PathKind path_kind(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
      return PathKind::forward;
    case TaskKind::backward:
      return PathKind::backward;
    case TaskKind::recompute:
      return PathKind::recompute;
    case TaskKind::optimizer:
      return PathKind::optimizer;
    case TaskKind::tp_collective:
      return PathKind::tp;
    case TaskKind::pp_send:
    case TaskKind::pp_recv:
      return PathKind::pp_transfer;
    case TaskKind::dp_all_gather:
      return PathKind::dp_all_gather;
    case TaskKind::dp_reduce_scatter:
      return PathKind::dp_reduce_scatter;
    case TaskKind::sync:
      return PathKind::sync;
    case TaskKind::host:
      return PathKind::host;
  }
  throw InternalError("unknown task kind");
}

}  // namespace

std::vector<PathPart> path_parts(const Program& program, const Timeline& timeline, int ranks) {
  std::map<std::pair<int, PathKind>, Time> sums;
  for (const CriticalLink& link : critical_path(program, timeline)) {
    const Task& task = program.tasks()[link.task.value];
    const int stage = static_cast<int>(Program::device_of(task.stream).value) % ranks;
    const auto add = [&](PathKind kind, Time time) {
      if (time.value > 0) sums[{stage, kind}] += time;
    };
    add(PathKind::tp, task.communication);
    add(PathKind::recompute, task.recompute);
    add(path_kind(task.kind), link.end - link.start - task.communication - task.recompute);
  }
  std::vector<PathPart> parts;
  for (const auto& [key, time] : sums) parts.push_back({key.first, key.second, to_seconds(time)});
  return parts;
}

}  // namespace mllmsim::run
