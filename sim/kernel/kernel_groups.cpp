#include "sim/kernel/kernel_groups.hpp"

#include <algorithm>

namespace mllmsim {

KernelRange KernelGroups::add_kernels(std::span<const Kernel> kernels) {
  const KernelRange range{static_cast<std::uint32_t>(kernels_.size()),
                          static_cast<std::uint32_t>(kernels.size())};
  kernels_.insert(kernels_.end(), kernels.begin(), kernels.end());
  return range;
}

TaskId KernelGroups::add(Program& program, DeviceId device, const KernelPiece& piece) {
  if (!open_ || device_ != device) {
    Task task;
    task.stream = Program::stream(device, StreamKind::compute);
    task.group = GroupId{static_cast<std::uint32_t>(ends_.size())};
    ends_.push_back(static_cast<std::uint32_t>(pieces_.size()));
    open_ = program.add(task);
    device_ = device;
  }
  pieces_.push_back(piece);
  ++ends_.back();
  chains_ = std::max(chains_, piece.chain + 1);
  return open_;
}

}  // namespace mllmsim
