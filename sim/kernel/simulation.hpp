// The discrete-event run of a Program.
//
// Each task waits for its predecessors and for its stream; the last of these to finish starts it
// (or lets it arrive at its transfer). When a task ends therefore follows from when its
// predecessors did, whatever else happens, and is propagated from task to task in any order. Only
// transfers that load links depend on what else is under way: their starts and ends alone are
// events, taken from a queue in the order of time.
//
// When all is done the run checks itself, in release builds too:
//   - every task ran exactly once,
//   - no stream overlaps itself,
//   - no task started before a predecessor ended,
//   - bytes sent = bytes received,
//   - memory returned to where it began.
// A cycle of dependencies shows as tasks that never ran and is reported by name.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/kernel/kernel_groups.hpp"
#include "sim/kernel/program.hpp"
#include "sim/kernel/route_links.hpp"

namespace mllmsim {

struct Timeline {
  // By task. ready: when it could have started but for its transfer.
  std::vector<Time> ready, start, end;
  Time span{};  // from 0 to the end of the last task
};

// links: of the program's routes.
Timeline simulate(const Program& program, const RouteLinks& links);
// bandwidths: of the links that the program's transfers use; empty if they use none.
Timeline simulate(const Program& program, const std::vector<BytesPerSecond>& bandwidths);

// Of a program with groups of kernels. A group is simulated when its first kernel can start, so
// kernels that need not wait for that one may be late, and so may their transfers. Nothing, if such
// a transfer would have met others that are past (LinkSharing::in_order). Then the kernels have to
// be tasks.
std::optional<Timeline> simulate_groups(const Program& program, const RouteLinks& links,
                                        GroupRunner& runner);

}  // namespace mllmsim
