// Simulates groups of kernels (kernel_groups.hpp) and keeps account of them on the way: why the
// compute stream idles, what memory is held, the digest of all events. All of it is what account(),
// memory_profile() and event_digest() say of the same program with a task per kernel, to the
// nanosecond and the byte.
#pragma once

#include <memory>
#include <vector>

#include "sim/account/bubbles.hpp"
#include "sim/account/event_digest.hpp"
#include "sim/account/memory.hpp"
#include "sim/kernel/kernel_groups.hpp"

namespace mllmsim {

struct StepAccounts {
  Time span{};
  std::uint64_t digest = 0;
  // By device.
  std::vector<Time> busy;
  std::vector<Bubbles> bubbles;
  std::vector<Bytes> peaks;  // of activations
};

StepAccounts accounts_of(const Program& program, const Timeline& timeline,
                         const std::vector<DeviceTime>& times,
                         const std::vector<std::vector<MemoryPoint>>& memory);

class GroupAccounts : public GroupRunner {
 public:
  GroupAccounts(const Program& program, const KernelGroups& groups);
  ~GroupAccounts() override;

  Ran run(TaskId task, Time ready, const Timeline& timeline) override;
  // Once all was simulated.
  StepAccounts finish(const Timeline& timeline);

 private:
  class Device;

  const Program& program_;
  const KernelGroups& groups_;
  std::unique_ptr<class GapClaims> claims_;
  std::unique_ptr<class KnownRows> rows_;
  std::vector<std::int64_t> ends_;  // by group: the collective it ends in, in its device's count
  std::vector<Device> devices_;
};

}  // namespace mllmsim
