// What the simulation executes: tasks on streams, with dependencies, transfers and memory deltas.
//
// Each device has one stream of every kind; a stream runs its tasks in the order they were added. A
// task starts when the task before it on its stream and all its predecessors are done. Tasks that
// belong to a transfer start together, when the last of them could, and take the transfer's
// duration, longer if its links are shared. A device stands for all tp ranks of one pipeline stage
// of one replica, which do the same at the same time.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/kernel/task_kinds.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

using DeviceId = Id<struct DeviceTag>;
using StreamId = Id<struct StreamTag>;
using TransferId = Id<struct TransferTag>;
using RouteId = Id<struct RouteTag>;
using GroupId = Id<struct GroupTag>;

struct Task {
  Time duration{};  // alone on its links
  // Part of a compute task's duration in which it waits for tp collectives.
  Time communication{};
  // Part of a backward's duration, tp waits aside, in which its forward runs again.
  Time recompute{};
  std::int64_t memory_at_start = 0, memory_at_end = 0;  // bytes on one GPU of the device
  Bytes bytes{};                                        // sent (or received) by the device
  StreamId stream;
  TransferId transfer;
  GroupId group;            // of kernels that it stands for (kernel_groups.hpp)
  std::uint32_t label = 0;  // see Program::label
  std::int32_t micro_batch = -1;
  std::int16_t chunk = -1;
  TaskKind kind = TaskKind::forward;
  bool in_backward = false;  // part of a backward pass, its recomputation and collectives included
};

struct Transfer {
  double factor = 1;  // it puts this much of its route's bytes on each link
  RouteId route;      // none: it uses no links
  std::uint32_t participants = 0;
  TaskId last_member;  // the others by Program::Node::previous_member
};

class Program {
 public:
  explicit Program(std::uint32_t devices)
      : devices_(devices), last_on_stream_(std::size_t{devices} * kStreamKinds) {}

  std::uint32_t devices() const { return devices_; }
  static StreamId stream(DeviceId device, StreamKind kind) {
    return {device.value * kStreamKinds + static_cast<std::uint32_t>(kind)};
  }
  static DeviceId device_of(StreamId stream) { return {stream.value / kStreamKinds}; }
  static StreamKind kind_of(StreamId stream) {
    return static_cast<StreamKind>(stream.value % kStreamKinds);
  }

  // Appends a task to its stream.
  TaskId add(const Task& task);
  void add_dependency(TaskId before, TaskId after);
  // More memory to take when the task starts (+), or to give back when it ends (-).
  void add_memory(TaskId task, std::int64_t at_start, std::int64_t at_end);
  // What transfers between the same places put on links, kept once for all of them.
  RouteId add_route(std::span<const LinkUse> uses);
  TransferId add_transfer(RouteId route = {}, double factor = 1);
  TransferId add_transfer(std::span<const LinkUse> uses) { return add_transfer(add_route(uses)); }
  std::uint32_t label(std::string_view text);  // interned text for spans

  void reserve(std::size_t tasks, std::size_t dependencies);

  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  std::uint32_t routes() const { return static_cast<std::uint32_t>(routes_.ends.size()); }
  std::span<const LinkUse> uses(RouteId route) const;
  struct Routes {
    std::vector<LinkUse> uses;  // of one route after the other
    std::vector<std::uint32_t> ends;

    bool operator==(const Routes&) const = default;
  };
  const Routes& all_routes() const { return routes_; }
  const std::string& text(std::uint32_t label) const { return labels_[label]; }
  // Sums over all tasks: what goes out must come in, what is taken must be given back.
  Bytes bytes_sent() const { return sent_; }
  Bytes bytes_received() const { return received_; }
  std::int64_t memory_left() const { return memory_; }

  static constexpr std::uint32_t kNoEdge = UINT32_MAX;
  struct Edge {
    TaskId before, after;
    std::uint32_t next = kNoEdge;  // another of the same `before`
  };
  const std::vector<Edge>& dependencies() const { return dependencies_; }  // stream order excluded
  // A task's place in the graph: all that the simulation follows.
  struct Node {
    TaskId next_on_stream, previous_member;    // of its stream, of its transfer
    std::uint32_t first_dependency = kNoEdge;  // of those that wait for it
    std::uint32_t predecessors = 0;            // it waits for: dependencies, and its stream
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  TaskId next_on_stream(TaskId task) const { return nodes_[task.value].next_on_stream; }

 private:
  std::uint32_t devices_;
  std::vector<Task> tasks_;
  std::vector<Node> nodes_;  // by task
  std::vector<TaskId> last_on_stream_;
  std::vector<Edge> dependencies_;
  std::vector<Transfer> transfers_;
  Routes routes_;
  std::vector<std::string> labels_;
  std::map<std::string, std::uint32_t, std::less<>> label_numbers_;
  Bytes sent_{}, received_{};
  std::int64_t memory_ = 0;
};

}  // namespace mllmsim
