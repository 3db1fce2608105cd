// The program of one step while it is made: which devices there are, what each has to do, and the
// tasks that were added so far. Private to this folder.
//
// A device is one pipeline rank of one replica, device = replica * pp + rank. Streams run tasks in
// the order they are added, so passes come first; later parts find a pass's tasks by tasks_of() and
// join theirs to them.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/kernel/kernel_groups.hpp"
#include "sim/kernel/program.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::lower {

// The tasks of one layer (or of a whole chunk) in one pass.
struct Segment {
  TaskId first, last;
  PlannedLayer layer;  // meaningless if the segment is a whole chunk
};

// Moving a segment does not throw, which clang-tidy cannot see of a small_vector.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct PassTasks {
  boost::container::small_vector<Segment, 1> segments;  // one: a whole chunk
  TaskId start{};  // what comes before the first layer; may be nothing
  TaskId first() const { return start ? start : segments.front().first; }
  TaskId last() const { return segments.back().last; }
};

// What one device sends to another at once.
struct Message {
  Time time{};  // alone on its links
  Bytes bytes{};
  RouteId route;      // none: no links
  double factor = 1;  // of what the route puts on its links
};

class StepBuilder {
 public:
  // grouped: kernels between points of contact are one task.
  StepBuilder(const Job& job, const Plan& plan, bool grouped = false);

  const Job& job() const { return job_; }
  const Plan& plan() const { return plan_; }
  int ranks() const { return ranks_; }
  std::uint32_t chunks() const { return chunks_; }
  int replicas() const { return static_cast<int>(plan_.micro_batches.size()); }
  std::uint32_t micro_batches() const { return micro_batches_; }  // of each replica
  DeviceId device(int replica, int rank) const {
    return {static_cast<std::uint32_t>(replica * ranks() + rank)};
  }
  const Chunk& chunk(int rank, std::uint32_t index) const {
    return plan_.stages[static_cast<std::size_t>(rank)][index];
  }
  const MicroBatch& micro_batch(int replica, std::uint32_t index) const {
    return plan_.micro_batches[static_cast<std::size_t>(replica)][index];
  }
  const std::vector<Pass>& schedule(int rank) const {
    return schedules_[static_cast<std::size_t>(rank)];
  }

  // What the micro-batch sends from a model stage to a neighbour, once somebody said it; equal
  // micro-batches in a row share it.
  std::optional<Bytes>& boundary(int from_stage, int to_stage, int replica, std::uint32_t index) {
    const std::size_t shape = shapes_[static_cast<std::size_t>(replica) * micro_batches() + index];
    const std::size_t stages = static_cast<std::size_t>(ranks()) * chunks();
    return boundaries_[(shape * stages + static_cast<std::size_t>(from_stage)) * 2 +
                       (to_stage > from_stage ? 0 : 1)];
  }

  // Model stages count through the ranks, then the chunks.
  int stage(int rank, const Pass& pass) const {
    return static_cast<int>(pass.chunk) * ranks() + rank;
  }
  const Chunk& layers_of_stage(int stage) const {
    return chunk(stage % ranks(), static_cast<std::uint32_t>(stage / ranks()));
  }
  // The model stage a pass's input comes from or its output goes to; nothing at the ends.
  std::optional<int> stage_before(int rank, const Pass& pass) const;
  std::optional<int> stage_after(int rank, const Pass& pass) const;

  PassTasks& tasks_of(int replica, int rank, const Pass& pass) {
    return passes_[index_of(replica, rank, pass)];
  }
  const PassTasks& tasks_of(int replica, int rank, const Pass& pass) const {
    return passes_[index_of(replica, rank, pass)];
  }
  // Among all passes of all devices.
  std::size_t index_of(int replica, int rank, const Pass& pass) const {
    const std::size_t micro_batch =
        std::size_t{device(replica, rank).value} * micro_batches() + pass.micro_batch;
    return (micro_batch * chunks() + pass.chunk) * 2 + (pass.forward ? 0 : 1);
  }
  std::size_t passes() const { return passes_.size(); }

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  bool grouped() const { return grouped_; }
  KernelGroups& kernel_groups() { return kernel_groups_; }
  std::uint32_t label(std::string_view text) { return program_.label(text); }
  // Of both texts together, which are static: known by where they are once they were looked up.
  std::uint32_t label(const char* part, std::string_view name);

  // A task of one pass, without a duration. Not added yet.
  Task task_of(const Pass& pass, DeviceId device, StreamKind stream, TaskKind kind,
               std::uint32_t label) const;
  // A task that waits for `previous`, if there is one: on one stream it does so by itself.
  TaskId add_after(TaskId previous, const Task& task);
  // Both sides of a message, which start together. The tasks say where and whose.
  struct Transfer {
    TaskId sent, received;
  };
  Transfer add_transfer(const Message& message, Task send, Task receive);

 private:
  const Job& job_;
  const Plan& plan_;
  int ranks_ = 0;
  std::uint32_t chunks_ = 0, micro_batches_ = 0;
  Program program_;
  bool grouped_;
  KernelGroups kernel_groups_;  // lists of kernels, and if grouped, the groups
  // The labels looked up last, each at a place that its texts' addresses give.
  struct KnownLabel {
    const char *part = nullptr, *name = nullptr;
    std::uint32_t label = 0;
  };
  std::array<KnownLabel, 256> known_labels_{};
  std::vector<std::vector<Pass>> schedules_;      // by rank
  std::vector<std::uint32_t> shapes_;             // of micro-batches (plan_costs.hpp)
  std::vector<std::optional<Bytes>> boundaries_;  // by shape, model stage and direction
  std::vector<PassTasks> passes_;                 // by replica, rank, micro-batch, chunk, direction
};

}  // namespace mllmsim::lower
