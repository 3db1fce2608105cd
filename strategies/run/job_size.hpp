// How large a simulation is, before it starts: from the job alone.
//
//   passes of a step = 2 * micro-batches * pp * vpp * replicas      forward and backward of a chunk
//   tasks of a step  = passes                                       at stage granularity
//                    = passes * kernels of a chunk                  kernel by kernel
//
// Replicas count if a data set makes them differ. Transfers come on top, and a packed pass has
// fewer steps: an estimate, good to a factor of two or so.
#pragma once

#include "strategies/job/job.hpp"

namespace mllmsim {

struct JobSize {
  double steps = 1;
  double tasks = 0;  // of one step

  double all_tasks() const { return steps * tasks; }
};

JobSize size_of(const Job& job);

// A job with more tasks in a step is refused: each takes about 1.3 kB with its span, so this is
// what 32 GB hold.
inline constexpr double kMostTasksPerStep = 2e7;

}  // namespace mllmsim
