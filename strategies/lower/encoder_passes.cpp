#include "strategies/lower/encoder_passes.hpp"

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::lower {

EncoderPasses::EncoderPasses(StepBuilder& step, const CostContext& costs)
    : step_(step),
      plan_(*step.plan().encoders),
      slowdown_(costs.kernels.gemm_slowdown_beside_collective()),
      layers_(step.job().model, encoder_parallelism(step.job(), plan_), step.job().software,
              costs.kernels, step.job().cluster),
      devices_(step.program().devices()) {
  check(static_cast<int>(plan_.ranks.size()) == step.ranks(), "an encoder plan covers every rank");
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank) {
      Device& device = device_of(replica, rank);
      const EncoderRank& order = plan_.ranks[static_cast<std::size_t>(rank)];
      device.open.resize(order.passes.size());
      for (const EncoderSlot& slot : order.slots) ++device.open[slot.pass].slots_left;
      device.waves.resize(plan_.waves.size() * 2);
      device.first_forward.resize(plan_.stage_of(rank).size());
      device.last_backward.resize(plan_.stage_of(rank).size());
    }
}

std::vector<const MicroBatch*> EncoderPasses::micro_batches_of(int replica,
                                                               const EncoderWave& wave) const {
  std::vector<const MicroBatch*> out;
  for (std::uint32_t i : wave.micro_batches) out.push_back(&step_.micro_batch(replica, i));
  return out;
}

const WaveTasks& EncoderPasses::tasks_of(int replica, int rank, std::uint32_t wave,
                                         bool forward) const {
  return devices_[step_.device(replica, rank).value].waves[wave * 2 + (forward ? 0 : 1)];
}

std::vector<TaskId> EncoderPasses::last_tasks() const {
  std::vector<TaskId> out;
  for (const Device& device : devices_) out.push_back(device.last);
  return out;
}

Time EncoderPasses::issue_before(const Position& llm) {
  const auto& slots = plan_.ranks[static_cast<std::size_t>(llm.rank)].slots;
  Device& device = device_of(llm.replica, llm.rank);
  Time beside{};
  while (device.next_slot < slots.size()) {
    const EncoderSlot& slot = slots[device.next_slot];
    if (std::pair(slot.llm_pass, slot.llm_kernel) > std::pair(llm.pass, llm.kernel)) break;
    beside += issue_slot(llm.replica, llm.rank, slot);
    ++device.next_slot;
  }
  return beside;
}

void EncoderPasses::issue_rest(int replica, int rank) {
  issue_before({replica, rank, UINT32_MAX, 0});
}

Time EncoderPasses::issue_slot(int replica, int rank, const EncoderSlot& slot) {
  const EncoderPass& pass = plan_.ranks[static_cast<std::size_t>(rank)].passes[slot.pass];
  Device& device = device_of(replica, rank);
  OpenPass& open = device.open[slot.pass];
  if (open.kernels.empty())
    open.kernels = encoder_kernels(layers_, plan_.stage_of(rank),
                                   micro_batches_of(replica, plan_.waves[pass.wave]), pass.forward);
  const std::size_t left = open.kernels.size() - open.issued;
  const bool last_slot = --open.slots_left == 0;
  Time beside{};
  for (std::size_t n = last_slot ? left : std::min<std::size_t>(slot.kernels, left); n > 0; --n)
    beside += issue_kernel(device, step_.device(replica, rank), pass, open.kernels[open.issued++],
                           slot.llm_kernel > 0);
  if (last_slot) open.kernels = {};
  return beside;
}

Time EncoderPasses::issue_kernel(Device& device, DeviceId id, const EncoderPass& pass,
                                 const EncoderKernel& k, bool tp_bubble) {
  Task task;
  task.stream = Program::stream(id, k.kernel.communication ? StreamKind::tp : StreamKind::compute);
  task.duration = k.kernel.time;
  if (tp_bubble && !k.kernel.communication) task.duration = scaled(task.duration, slowdown_);
  task.kind = k.kind;
  task.label = step_.label("encoder ", k.kernel.name);
  task.micro_batch = static_cast<std::int32_t>(plan_.waves[pass.wave].micro_batches.front());
  task.in_backward = !pass.forward;
  task.memory_at_start = k.memory_at_start;
  task.memory_at_end = k.memory_at_end;
  WaveTasks& wave = device.waves[pass.wave * 2 + (pass.forward ? 0 : 1)];
  device.last = wave.last = step_.add_after(wave.last, task);
  if (!wave.first) wave.first = wave.last;
  if (pass.forward && !device.first_forward[k.layer]) device.first_forward[k.layer] = device.last;
  if (!pass.forward) device.last_backward[k.layer] = device.last;
  return tp_bubble && !k.kernel.communication ? task.duration : Time{};
}

}  // namespace mllmsim::lower
