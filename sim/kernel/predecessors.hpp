// What each task of a program waits for: its dependencies, and last the task before it on its
// stream.
#pragma once

#include <span>
#include <vector>

#include "sim/kernel/program.hpp"

namespace mllmsim {

class Predecessors {
 public:
  explicit Predecessors(const Program& program) : first_(program.tasks().size() + 1, 0) {
    const auto for_each_edge = [&](auto&& use) {
      for (const Program::Edge& e : program.dependencies()) use(e.before, e.after);
      for (std::uint32_t t = 0; t < program.tasks().size(); ++t)
        if (const TaskId next = program.next_on_stream({t})) use(TaskId{t}, next);
    };
    for_each_edge([&](TaskId, TaskId after) { ++first_[after.value + 1]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    sources_.resize(first_.back());
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for_each_edge([&](TaskId before, TaskId after) { sources_[at[after.value]++] = before; });
  }
  std::span<const TaskId> of(TaskId task) const {
    const std::uint32_t begin = first_[task.value];
    return std::span(sources_).subspan(begin, first_[task.value + 1] - begin);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<TaskId> sources_;
};

}  // namespace mllmsim
