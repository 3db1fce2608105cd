#include "sim/kernel/program.hpp"

#include <utility>

#include "sim/base/errors.hpp"

namespace mllmsim {

void Program::reserve(std::size_t tasks, std::size_t dependencies) {
  tasks_.reserve(tasks);
  nodes_.reserve(tasks);
  dependencies_.reserve(dependencies);
}

TaskId Program::add(const Task& task) {
  check(task.duration.value >= 0, "a task cannot take negative time");
  const TaskId id{static_cast<std::uint32_t>(tasks_.size())};
  Node node;
  TaskId& last = last_on_stream_[task.stream.value];
  if (last) {
    nodes_[last.value].next_on_stream = id;
    node.predecessors = 1;
  }
  last = id;
  if (task.transfer) {
    Transfer& transfer = transfers_[task.transfer.value];
    ++transfer.participants;
    node.previous_member = std::exchange(transfer.last_member, id);
  }
  if (task.kind == TaskKind::pp_send) sent_ += task.bytes;
  if (task.kind == TaskKind::pp_recv) received_ += task.bytes;
  memory_ += task.memory_at_start + task.memory_at_end;
  tasks_.push_back(task);
  nodes_.push_back(node);
  return id;
}

void Program::add_dependency(TaskId before, TaskId after) {
  check(before && after, "a dependency joins two tasks");
  std::uint32_t& first = nodes_[before.value].first_dependency;
  ++nodes_[after.value].predecessors;
  dependencies_.push_back({before, after, first});
  first = static_cast<std::uint32_t>(dependencies_.size() - 1);
}

void Program::add_memory(TaskId task, std::int64_t at_start, std::int64_t at_end) {
  tasks_[task.value].memory_at_start += at_start;
  tasks_[task.value].memory_at_end += at_end;
  memory_ += at_start + at_end;
}

RouteId Program::add_route(std::span<const LinkUse> uses) {
  if (uses.empty()) return {};
  routes_.uses.insert(routes_.uses.end(), uses.begin(), uses.end());
  routes_.ends.push_back(static_cast<std::uint32_t>(routes_.uses.size()));
  return {routes() - 1};
}

std::span<const LinkUse> Program::uses(RouteId route) const {
  const std::uint32_t first = route.value == 0 ? 0 : routes_.ends[route.value - 1];
  return std::span(routes_.uses).subspan(first, routes_.ends[route.value] - first);
}

TransferId Program::add_transfer(RouteId route, double factor) {
  transfers_.push_back({factor, route, 0, {}});
  return {static_cast<std::uint32_t>(transfers_.size() - 1)};
}

std::uint32_t Program::label(std::string_view text) {
  const auto known = label_numbers_.find(text);
  if (known != label_numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(labels_.size());
  labels_.emplace_back(text);
  label_numbers_.emplace(text, number);
  return number;
}

}  // namespace mllmsim
