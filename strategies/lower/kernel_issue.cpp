#include "strategies/lower/kernel_issue.hpp"

namespace mllmsim::lower {
namespace {

IssuedRow issue_tasks(StepBuilder& step, KernelChain& chain, const KernelRow& row) {
  const DeviceId device = Program::device_of(row.like.stream);
  IssuedRow issued;
  for (std::uint32_t i = 0; i < row.kernels.count; ++i) {
    const Kernel k = step.kernel_groups().kernel(row.kernels.first + i);
    Task task = row.like;
    task.stream = Program::stream(device, k.tp ? StreamKind::tp : StreamKind::compute);
    task.kind = k.kind;
    task.label = k.label;
    task.duration = k.duration;
    if (k.waits) task.communication = k.duration;
    if (i == 0) task.memory_at_start = row.memory.start;
    if (i + 1 == row.kernels.count) task.memory_at_end = row.memory.end;
    chain.last = step.add_after(chain.last, task);
    if (i == 0) issued.first = chain.last;
  }
  issued.last = chain.last;
  return issued;
}

}  // namespace

IssuedRow issue(StepBuilder& step, KernelChain& chain, const KernelRow& row) {
  if (!step.grouped()) return issue_tasks(step, chain, row);
  const KernelPiece piece{row.kernels, row.memory, chain.number, row.like.in_backward,
                          row.like.chunk < 0};
  chain.last = step.kernel_groups().add(step.program(), Program::device_of(row.like.stream), piece);
  return {chain.last, chain.last};
}

}  // namespace mllmsim::lower
