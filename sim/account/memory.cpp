#include "sim/account/memory.hpp"

#include <algorithm>
#include <utility>

#include "sim/kernel/simulation.hpp"

namespace mllmsim {

namespace {

struct Change {
  Time time;
  std::int64_t delta = 0, working = 0;
};

std::vector<std::vector<Change>> changes_by_device(const Program& program,
                                                   const Timeline& timeline) {
  std::vector<std::vector<Change>> changes(program.devices());
  std::vector<std::array<std::int64_t, 2>> working(program.devices());  // pipeline, encoders
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    if (task.memory_at_start == 0 && task.memory_at_end == 0) continue;
    const std::uint32_t device = Program::device_of(task.stream).value;
    std::int64_t& held = working[device][task.chunk < 0 ? 1 : 0];
    if (task.memory_at_start != 0) {
      const std::int64_t taken = task.in_backward ? task.memory_at_start : 0;
      changes[device].push_back({timeline.start[t], task.memory_at_start, taken});
      held += taken;
    }
    if (task.memory_at_end != 0)
      changes[device].push_back({timeline.end[t], task.memory_at_end, -std::exchange(held, 0)});
  }
  return changes;
}

}  // namespace

std::vector<std::vector<MemoryPoint>> memory_profile(const Program& program,
                                                     const Timeline& timeline) {
  std::vector<std::vector<Change>> changes = changes_by_device(program, timeline);
  std::vector<std::vector<MemoryPoint>> profiles(program.devices());
  for (std::size_t d = 0; d < profiles.size(); ++d) {
    std::stable_sort(changes[d].begin(), changes[d].end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.delta < b.delta;
    });
    std::vector<MemoryPoint>& profile = profiles[d];
    profile.push_back({});
    MemoryPoint now;
    for (const Change& c : changes[d]) {
      now = {c.time, now.bytes + Bytes{c.delta}, now.working + Bytes{c.working}};
      if (profile.back().time == c.time)
        profile.back() = now;
      else
        profile.push_back(now);
    }
  }
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
