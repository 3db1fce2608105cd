// Why a step is as long as it is: the chain of tasks, each waiting for the one before, that ends
// with the last task and begins at time 0.
//
// Walked backwards from the task that ends last: what a task's start waited for is the predecessor
// (dependency, task before it on its stream, or, through a transfer, one of another participant)
// that ended exactly when it became ready. In a discrete-event run there always is one, so the
// links of the chain cover the whole step without gaps. Shortening anything off the chain changes
// nothing; shortening a link helps at most until another chain is longer.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"
#include "sim/kernel/task_kinds.hpp"

namespace mllmsim {

class Program;
struct Timeline;

// What time on the path goes into. Sends and receives are one transfer; waiting for tp collectives
// and running a forward again count as such wherever they are part of a task.
enum class PathKind : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  tp,
  pp_transfer,
  dp_all_gather,
  dp_reduce_scatter,
  sync,
  host,
};
template <>
struct Names<PathKind> {
  static constexpr std::array<std::string_view, 10> list{
      "forward",     "backward",      "recompute",         "optimizer", "tp",
      "pp_transfer", "dp_all_gather", "dp_reduce_scatter", "sync",      "host"};
};

struct CriticalLink {
  TaskId task;
  Time start, end;  // of the part of the task on the path
};

// In time order; from 0 to the end of the step.
std::vector<CriticalLink> critical_path(const Program& program, const Timeline& timeline);

}  // namespace mllmsim
