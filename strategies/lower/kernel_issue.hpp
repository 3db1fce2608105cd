// Kernels as a device issues them, in rows: each a task of its own, or the row a piece of a group
// that is simulated as one task (sim/kernel/kernel_groups.hpp). Private to this folder.
#pragma once

#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// Kernels of which each waits for the one before.
struct KernelChain {
  TaskId last;
  std::uint32_t number = 0;  // among the device's
};

// Which row it is.
struct KernelRow {
  KernelRange kernels;
  MemoryDeltas memory;
  // Of all its tasks: micro-batch, chunk, direction, and a stream of the device.
  const Task& like;
};

struct IssuedRow {
  TaskId first, last;
};
IssuedRow issue(StepBuilder& step, KernelChain& chain, const KernelRow& row);

// Where others may wait for the kernels issued so far, or the next may wait for others.
inline void cut(StepBuilder& step) { step.kernel_groups().cut(); }

}  // namespace mllmsim::lower
