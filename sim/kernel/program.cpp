#include "sim/kernel/program.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"

namespace mllmsim {

TaskId Program::add(const Task& task) {
  check(task.duration.value >= 0, "a task cannot take negative time");
  const TaskId id{static_cast<std::uint32_t>(tasks_.size())};
  TaskId& last = last_on_stream_[task.stream.value];
  if (last) next_on_stream_[last.value] = id;
  last = id;
  if (task.transfer) ++transfers_[task.transfer.value].participants;
  tasks_.push_back(task);
  next_on_stream_.emplace_back();
  return id;
}

void Program::add_dependency(TaskId before, TaskId after) {
  check(before && after, "a dependency joins two tasks");
  dependencies_.push_back({before, after});
}

void Program::add_memory(TaskId task, std::int64_t at_start, std::int64_t at_end) {
  tasks_[task.value].memory_at_start += at_start;
  tasks_[task.value].memory_at_end += at_end;
}

TransferId Program::add_transfer(std::span<const LinkUse> uses) {
  const TransferId id{static_cast<std::uint32_t>(transfers_.size())};
  transfers_.push_back(
      {0, static_cast<std::uint32_t>(link_uses_.size()), static_cast<std::uint32_t>(uses.size())});
  link_uses_.insert(link_uses_.end(), uses.begin(), uses.end());
  return id;
}

std::uint32_t Program::label(std::string_view text) {
  // A program has a few dozen labels, looked up once per layer or chunk.
  const auto found = std::find(labels_.begin(), labels_.end(), text);
  if (found != labels_.end()) return static_cast<std::uint32_t>(found - labels_.begin());
  labels_.emplace_back(text);
  return static_cast<std::uint32_t>(labels_.size() - 1);
}

}  // namespace mllmsim
