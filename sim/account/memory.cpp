#include "sim/account/memory.hpp"

#include <algorithm>

namespace mllmsim {

std::vector<std::vector<MemoryPoint>> memory_profile(const Program& program,
                                                     const Timeline& timeline) {
  struct Change {
    Time time;
    std::int64_t delta;
  };
  std::vector<std::vector<Change>> changes(program.devices());
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    std::vector<Change>& of_device = changes[Program::device_of(task.stream).value];
    if (task.memory_at_start != 0) of_device.push_back({timeline.start[t], task.memory_at_start});
    if (task.memory_at_end != 0) of_device.push_back({timeline.end[t], task.memory_at_end});
  }
  std::vector<std::vector<MemoryPoint>> profiles(program.devices());
  for (std::size_t d = 0; d < profiles.size(); ++d) {
    std::stable_sort(changes[d].begin(), changes[d].end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.delta < b.delta;
    });
    std::vector<MemoryPoint>& profile = profiles[d];
    profile.push_back({Time{0}, Bytes{0}});
    Bytes now{0};
    for (const Change& c : changes[d]) {
      now += Bytes{c.delta};
      if (profile.back().time == c.time)
        profile.back().bytes = now;
      else
        profile.push_back({c.time, now});
    }
  }
  return profiles;
}

Bytes peak(const std::vector<MemoryPoint>& profile) {
  Bytes most{0};
  for (const MemoryPoint& p : profile) most = std::max(most, p.bytes);
  return most;
}

ModelState model_state(std::int64_t parameters, std::int64_t trained_parameters, int ranks,
                       int zero_stage, const Software& software) {
  const auto shard = [&](std::int64_t bytes, int from_stage) {
    return Bytes{zero_stage >= from_stage ? (bytes + ranks - 1) / ranks : bytes};
  };
  const Precision& precision = software.precision;
  return {shard(precision.parameter_bytes * parameters, 3),
          shard(precision.grad_bytes_per_parameter * trained_parameters, 2),
          shard(precision.optimizer_bytes_per_parameter * trained_parameters, 1)};
}

}  // namespace mllmsim
