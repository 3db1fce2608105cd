#include "strategies/lower/encoder_passes.hpp"

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::lower {

EncoderPasses::EncoderPasses(StepBuilder& step, const CostContext& costs)
    : step_(step),
      plan_(*step.plan().encoders),
      slowdown_(costs.kernels.gemm_slowdown_beside_collective()),
      layers_(costs.encoder_layers
                  ? *costs.encoder_layers
                  : own_layers_.emplace(encoder_layer_costs(step.job(), plan_, costs.kernels))),
      in_buckets_(encoder_parallelism(step.job(), plan_).data_parallel_size > 1),
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

IssuedBetween::Beside EncoderPasses::issue_before(const Position& llm) {
  const auto& slots = plan_.ranks[static_cast<std::size_t>(llm.rank)].slots;
  Device& device = device_of(llm.replica, llm.rank);
  Beside beside;
  while (device.next_slot < slots.size()) {
    const EncoderSlot& slot = slots[device.next_slot];
    if (std::pair(slot.llm_pass, slot.llm_kernel) > std::pair(llm.pass, llm.kernel)) break;
    const Beside more = issue_slot(llm.replica, llm.rank, slot);
    beside.computing += more.computing;
    beside.communicating += more.communicating;
    ++device.next_slot;
  }
  return beside;
}

void EncoderPasses::issue_rest(int replica, int rank) {
  issue_before({replica, rank, UINT32_MAX, 0});
}

std::uint32_t EncoderPasses::kernels_until_next(const Position& llm) const {
  const auto& slots = plan_.ranks[static_cast<std::size_t>(llm.rank)].slots;
  const std::size_t next = devices_[step_.device(llm.replica, llm.rank).value].next_slot;
  return next < slots.size() && slots[next].llm_pass == llm.pass
             ? slots[next].llm_kernel - llm.kernel
             : UINT32_MAX;
}

// Layers that are alike have one list, followed by that of the same kernels in tp bubbles.
std::vector<EncoderPasses::Layer> EncoderPasses::layers_of(int replica, int rank,
                                                           const EncoderPass& pass) {
  std::vector<Layer> out;
  const costs::LayerCost* listed = nullptr;
  const auto list = [&](const std::vector<costs::TimedKernel>& kernels, TaskKind kind) {
    for (const costs::TimedKernel& k : kernels)
      listing_.push_back({k.time, step_.label("encoder ", k.name),
                          k.communication ? TaskKind::tp_collective : kind, k.communication});
  };
  KernelRange normal;
  for (const EncoderLayer& l :
       encoder_layers(layers_, plan_.stage_of(rank),
                      micro_batches_of(replica, plan_.waves[pass.wave]), pass.forward)) {
    if (out.empty() || l.cost != listed) {
      const TaskKind kind = pass.forward ? TaskKind::forward : TaskKind::backward;
      listing_.clear();
      if (!l.cost) listing_.push_back({{}, step_.label("encoder ", "nothing"), kind});
      if (l.cost && !pass.forward) list(l.cost->recompute, TaskKind::recompute);
      if (l.cost) list(pass.forward ? l.cost->forward : l.cost->backward, kind);
      normal = step_.kernel_groups().add_kernels(listing_);
      for (Kernel& k : listing_)
        if (!k.tp) k.duration = scaled(k.duration, slowdown_);
      step_.kernel_groups().add_kernels(listing_);
      listed = l.cost;
    }
    out.push_back({normal, normal.first + normal.count, l.memory, l.layer});
  }
  return out;
}

IssuedBetween::Beside EncoderPasses::issue_slot(int replica, int rank, const EncoderSlot& slot) {
  const EncoderPass& pass = plan_.ranks[static_cast<std::size_t>(rank)].passes[slot.pass];
  Device& device = device_of(replica, rank);
  OpenPass& open = device.open[slot.pass];
  if (open.layers.empty()) {
    open.layers = layers_of(replica, rank, pass);
    open.chain.number = 1 + pass.wave * 2 + (pass.forward ? 0 : 1);
    cut(step_);
  }
  const bool last_slot = --open.slots_left == 0;
  Beside beside;
  for (std::uint32_t left = last_slot ? UINT32_MAX : slot.kernels;
       left > 0 && open.at < open.layers.size();)
    left -= issue_kernels(device, step_.device(replica, rank), pass, open, left,
                          slot.llm_kernel > 0, beside);
  if (last_slot) open.layers = {};
  return beside;
}

std::uint32_t EncoderPasses::issue_kernels(Device& device, DeviceId id, const EncoderPass& pass,
                                           OpenPass& open, std::uint32_t count, bool tp_bubble,
                                           Beside& beside) {
  const Layer& layer = open.layers[open.at];
  const bool begins = open.issued == 0;
  count = std::min(count, layer.kernels.count - open.issued);
  const bool ends = open.issued + count == layer.kernels.count;
  const KernelRange row{(tp_bubble ? layer.slowed : layer.kernels.first) + open.issued, count};
  if (tp_bubble)
    for (const Kernel& k : step_.kernel_groups().of(row))
      (k.tp ? beside.communicating : beside.computing) += k.duration;
  Task like;
  like.stream = Program::stream(id, StreamKind::compute);
  like.micro_batch = static_cast<std::int32_t>(plan_.waves[pass.wave].micro_batches.front());
  like.in_backward = !pass.forward;
  TaskId& gathered_for = device.first_forward[layer.layer];
  if (in_buckets_ && pass.forward && begins && !gathered_for) cut(step_);
  const IssuedRow issued =
      issue(step_, open.chain,
            {row, {begins ? layer.memory.start : 0, ends ? layer.memory.end : 0}, like});
  WaveTasks& wave = device.waves[pass.wave * 2 + (pass.forward ? 0 : 1)];
  device.last = wave.last = issued.last;
  if (!wave.first) wave.first = issued.first;
  if (pass.forward && !gathered_for) gathered_for = issued.first;
  if (!pass.forward) device.last_backward[layer.layer] = issued.last;
  open.issued += count;
  if (ends) {
    ++open.at;
    open.issued = 0;
    if ((in_buckets_ && !pass.forward) || open.at == open.layers.size()) cut(step_);
  }
  return count;
}

}  // namespace mllmsim::lower
