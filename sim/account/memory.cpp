#include "sim/account/memory.hpp"

#include <algorithm>
#include <utility>

#include "sim/kernel/simulation.hpp"

namespace mllmsim {

void MemoryChanges::add(Time start, Time end, std::int64_t at_start, std::int64_t at_end,
                        bool in_backward, bool beside_pipeline) {
  std::int64_t& held = working_[beside_pipeline ? 1 : 0];
  if (at_start != 0) {
    const std::int64_t taken = in_backward ? at_start : 0;
    changes_.push_back({start, at_start, taken});
    held += taken;
  }
  if (at_end != 0) changes_.push_back({end, at_end, -std::exchange(held, 0)});
}

std::vector<MemoryPoint> MemoryChanges::profile() {
  const auto before = [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.delta < b.delta;
  };
  // Nearly in order already: each goes back a little.
  for (std::size_t i = 1; i < changes_.size(); ++i) {
    const Change change = changes_[i];
    std::size_t at = i;
    for (; at > 0 && before(change, changes_[at - 1]); --at) changes_[at] = changes_[at - 1];
    changes_[at] = change;
  }
  std::vector<MemoryPoint> profile(1);
  profile.reserve(changes_.size() + 1);
  MemoryPoint now;
  for (const Change& c : changes_) {
    now = {c.time, now.bytes + Bytes{c.delta}, now.working + Bytes{c.working}};
    if (profile.back().time == c.time)
      profile.back() = now;
    else
      profile.push_back(now);
  }
  return profile;
}

std::vector<std::vector<MemoryPoint>> memory_profile(const Program& program,
                                                     const Timeline& timeline) {
  std::vector<MemoryChanges> changes(program.devices());
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    if (task.memory_at_start == 0 && task.memory_at_end == 0) continue;
    changes[Program::device_of(task.stream).value].add(timeline.start[t], timeline.end[t],
                                                       task.memory_at_start, task.memory_at_end,
                                                       task.in_backward, task.chunk < 0);
  }
  std::vector<std::vector<MemoryPoint>> profiles;
  profiles.reserve(changes.size());
  for (MemoryChanges& of_device : changes) profiles.push_back(of_device.profile());
  return profiles;
}

Bytes peak(const std::vector<MemoryPoint>& profile) {
  Bytes most{0};
  for (const MemoryPoint& p : profile) most = std::max(most, p.bytes);
  return most;
}

Holdings& Holdings::operator+=(const Holdings& other) {
  for (std::size_t i = 0; i < kHoldings; ++i) bytes[i] += other.bytes[i];
  return *this;
}

Bytes Holdings::total() const {
  Bytes sum{};
  for (const Bytes b : bytes) sum += b;
  return sum;
}

Bytes Holdings::allocated() const {
  Bytes sum{};
  for (std::size_t i = 0; i < kHoldings; ++i)
    if (in_allocator(static_cast<Holding>(i))) sum += bytes[i];
  return sum;
}

Bytes Holdings::model_state() const {
  const Holdings& h = *this;
  return h[Holding::weights] + h[Holding::gradients] + h[Holding::model_gradients] +
         h[Holding::optimizer];
}

Holdings model_state(std::int64_t parameters, std::int64_t trained_parameters, int ranks,
                     int zero_stage, const Software& software) {
  const auto shard = [&](std::int64_t bytes, int from_stage) {
    return Bytes{zero_stage >= from_stage ? (bytes + ranks - 1) / ranks : bytes};
  };
  const Precision& precision = software.precision;
  Holdings out;
  out[Holding::weights] = shard(precision.parameter_bytes * parameters, 3);
  out[Holding::gradients] = shard(precision.grad_bytes_per_parameter * trained_parameters, 2);
  out[Holding::model_gradients] =
      shard(software.memory.model_grad_bytes_per_parameter * trained_parameters, 2);
  out[Holding::optimizer] = shard(precision.optimizer_bytes_per_parameter * trained_parameters, 1);
  if (software.optimizer_offload_fraction > 0)
    out[Holding::optimizer] =
        scaled(out[Holding::optimizer], 1 - software.optimizer_offload_fraction);
  return out;
}

}  // namespace mllmsim
