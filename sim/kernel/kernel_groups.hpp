// Kernels that a device issues between points of contact with others, simulated as one task.
//
// A step cut kernel by kernel has a million of them, and nearly all only follow each other on their
// device. A group is a row of kernels as the device issues them, on its compute and tp streams.
// Only its first kernel may wait for other tasks of the program, and others may wait only for its
// last. In between a kernel starts when its stream is free and the one before it in its chain (the
// LLM's kernels, or those of one pass of an encoder) is done, which is two maxima and a sum, not a
// task. Lists of kernels are kept once and used by all layers that are alike.
#pragma once

#include <span>
#include <vector>

#include "sim/kernel/program.hpp"

namespace mllmsim {

struct Kernel {
  Time duration{};
  std::uint32_t label = 0;  // see Program::label
  TaskKind kind = TaskKind::forward;
  bool tp = false;     // on the tp stream; otherwise on compute
  bool waits = false;  // the compute stream waits for a tp collective all the while
};
static_assert(sizeof(Kernel) == 16);

// Kernels one after another in the list of all.
struct KernelRange {
  std::uint32_t first = 0, count = 0;
};

// What a row of kernels takes when the first starts and, negative, gives back when the last ends.
struct MemoryDeltas {
  std::int64_t start = 0, end = 0;
};

struct KernelPiece {
  KernelRange kernels;
  MemoryDeltas memory;
  std::uint32_t chain = 0;
  bool backward = false, beside = false;  // of a backward; of encoders beside the pipeline
};

class KernelGroups {
 public:
  KernelRange add_kernels(std::span<const Kernel> kernels);
  std::size_t kernels() const { return kernels_.size(); }
  const Kernel& kernel(std::uint32_t index) const { return kernels_[index]; }
  std::span<const Kernel> of(const KernelRange& r) const {
    return std::span(kernels_).subspan(r.first, r.count);
  }

  // To the group of the device that is open, or a new one: a task on its compute stream.
  TaskId add(Program& program, DeviceId device, const KernelPiece& piece);
  void cut() { open_ = {}; }  // the next kernel begins another

  std::span<const KernelPiece> pieces(GroupId group) const {
    const std::uint32_t begin = group.value == 0 ? 0 : ends_[group.value - 1];
    return std::span(pieces_).subspan(begin, ends_[group.value] - begin);
  }
  std::size_t groups() const { return ends_.size(); }
  std::uint32_t chains() const { return chains_; }  // at most, of a device

 private:
  std::vector<Kernel> kernels_;
  std::vector<KernelPiece> pieces_;
  std::vector<std::uint32_t> ends_;  // by group, in pieces_
  std::uint32_t chains_ = 0;
  TaskId open_;
  DeviceId device_;  // of the open group
};

// Who simulates the kernels of groups, and keeps account of them: a device's in their order.
class GroupRunner {
 public:
  GroupRunner() = default;
  GroupRunner(const GroupRunner&) = delete;
  GroupRunner& operator=(const GroupRunner&) = delete;
  virtual ~GroupRunner() = default;

  struct Ran {
    Time start, end;    // of the first kernel, of the last
    Time latest;        // end of any
    Time compute_free;  // when the device's compute stream is
  };
  // ready: when all that the first kernel waits for on others is done. timeline: of these, and all
  // before them.
  virtual Ran run(TaskId task, Time ready, const struct Timeline& timeline) = 0;
};

}  // namespace mllmsim
