#include "results/run/path_rows.hpp"

#include <map>

#include "sim/account/critical_path.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::results {
namespace {

const char* kind_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::recompute:
      return "recompute";
    case TaskKind::optimizer:
      return "optimizer";
    case TaskKind::tp_collective:
      return "tp";
    case TaskKind::pp_send:
    case TaskKind::pp_recv:
      return "pp_transfer";
    case TaskKind::dp_all_gather:
      return "dp_all_gather";
    case TaskKind::dp_reduce_scatter:
      return "dp_reduce_scatter";
    case TaskKind::sync:
      return "sync";
    case TaskKind::host:
      return "host";
  }
  throw InternalError("unknown task kind");
}

}  // namespace

std::vector<PathRow> path_rows(const Program& program, const Timeline& timeline, int ranks) {
  std::map<std::pair<int, std::string>, Time> sums;
  for (const CriticalLink& link : critical_path(program, timeline)) {
    const Task& task = program.tasks()[link.task.value];
    const int stage = static_cast<int>(Program::device_of(task.stream).value) % ranks;
    const auto add = [&](const char* kind, Time time) {
      if (time.value > 0) sums[{stage, kind}] += time;
    };
    add("tp", task.communication);
    add("recompute", task.recompute);
    add(kind_of(task.kind), link.end - link.start - task.communication - task.recompute);
  }
  std::vector<PathRow> rows;
  for (const auto& [key, time] : sums) rows.push_back({key.first, key.second, to_seconds(time)});
  return rows;
}

}  // namespace mllmsim::results
