// Encoders beside the LLM's pipeline: their kernels are issued between the LLM's on the same
// compute and tp streams, in the order the plan says. What feeds what is added as dependencies, so
// an order that starves the LLM shows as a longer step.
//
//   forward    first encoder stage of a group -> ... -> last -> LLM rank 0, before forward i there
//   backward   LLM rank 0, after backward i there -> last encoder stage -> ... -> first
//
// Activations to and from the LLM travel by P2P unless the last encoder stage is on LLM rank 0.
// Gradients are reduced over all encoder pipelines, bucket by bucket, once the last backward
// through a bucket is done; with zero_stage 1 parameters are gathered before the first forward
// through it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/lower/groups.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {

void Lowering::prepare_encoders() {
  const EncoderPlan& plan = *plan_.encoders;
  check(static_cast<int>(plan.ranks.size()) == ranks(), "an encoder plan covers every rank");
  encoder_costs_.emplace(job_.model, encoder_parallelism(job_, plan), job_.software,
                         costs_->kernels, job_.cluster);
  encoders_.resize(program_.devices());
  for (std::uint32_t d = 0; d < encoders_.size(); ++d) {
    const Chunk& stage = plan.stage_of(static_cast<int>(d) % ranks());
    encoders_[d].tasks.resize(plan.waves.size() * 2);
    encoders_[d].first_forward.resize(stage.size());
    encoders_[d].last_backward.resize(stage.size());
  }
}

std::vector<const MicroBatch*> Lowering::micro_batches_of(int replica,
                                                          const EncoderWave& wave) const {
  std::vector<const MicroBatch*> out;
  for (std::uint32_t i : wave.micro_batches)
    out.push_back(&plan_.micro_batches[static_cast<std::size_t>(replica)][i]);
  return out;
}

Segment& Lowering::encoder_tasks(int replica, int rank, std::uint32_t wave, bool forward) {
  return encoders_[device(replica, rank).value].tasks[wave * 2 + (forward ? 0 : 1)];
}

// Issues the slots that come before this kernel of the LLM.
void Lowering::issue_encoders(int replica, int rank, std::uint32_t llm_pass,
                              std::uint32_t llm_kernel) {
  const auto& slots = plan_.encoders->ranks[static_cast<std::size_t>(rank)].slots;
  EncoderDevice& e = encoders_[device(replica, rank).value];
  while (e.next_slot < slots.size()) {
    const EncoderSlot& slot = slots[e.next_slot];
    if (std::pair(slot.llm_pass, slot.llm_kernel) > std::pair(llm_pass, llm_kernel)) return;
    issue_slot(replica, rank, slot);
    ++e.next_slot;
  }
}

void Lowering::issue_slot(int replica, int rank, const EncoderSlot& slot) {
  const EncoderRank& order = plan_.encoders->ranks[static_cast<std::size_t>(rank)];
  const EncoderPass& pass = order.passes[slot.pass];
  const EncoderWave& wave = plan_.encoders->waves[pass.wave];
  EncoderDevice& e = encoders_[device(replica, rank).value];
  if (e.open.empty()) {
    e.open.resize(order.passes.size());
    for (const EncoderSlot& s : order.slots) ++e.open[s.pass].slots_left;
  }
  OpenEncoderPass& open = e.open[slot.pass];
  if (open.kernels.empty())
    open.kernels = encoder_kernels(*encoder_costs_, plan_.encoders->stage_of(rank),
                                   micro_batches_of(replica, wave), pass.forward);
  const std::size_t left = open.kernels.size() - open.issued;
  const bool last_slot = --open.slots_left == 0;
  for (std::size_t n = last_slot ? left : std::min<std::size_t>(slot.kernels, left); n > 0; --n)
    issue_kernel(replica, rank, pass, open.kernels[open.issued++], slot.llm_kernel > 0);
  if (last_slot) open.kernels = {};
}

// In a tp bubble a kernel runs beside a collective of the LLM.
void Lowering::issue_kernel(int replica, int rank, const EncoderPass& pass, const EncoderKernel& k,
                            bool tp_bubble) {
  const DeviceId d = device(replica, rank);
  Task task;
  task.stream = Program::stream(d, k.kernel.communication ? StreamKind::tp : StreamKind::compute);
  task.duration = k.kernel.time;
  if (tp_bubble && !k.kernel.communication)
    task.duration = scaled(task.duration, costs_->kernels.gemm_slowdown_beside_collective());
  task.kind = k.kind;
  task.label = program_.label(fmt::format("encoder {}", k.kernel.name));
  task.micro_batch =
      static_cast<std::int32_t>(plan_.encoders->waves[pass.wave].micro_batches.front());
  task.memory_at_start = k.memory_at_start;
  task.memory_at_end = k.memory_at_end;
  const TaskId id = program_.add(task);
  Segment& segment = encoder_tasks(replica, rank, pass.wave, pass.forward);
  if (!segment.first)
    segment.first = id;
  else if (program_.tasks()[segment.last.value].stream != task.stream)
    program_.add_dependency(segment.last, id);
  segment.last = id;
  EncoderDevice& e = encoders_[d.value];
  if (pass.forward && !e.first_forward[k.layer]) e.first_forward[k.layer] = id;
  if (!pass.forward) e.last_backward[k.layer] = id;
  e.last = id;
}

// One message of every lane of a wave at once.
std::pair<TaskId, TaskId> Lowering::send_wave(int replica, int from, int to, bool forward,
                                              std::uint32_t wave_index, const Layer& leaving) {
  const EncoderWave& wave = plan_.encoders->waves[wave_index];
  const int tp = plan_.encoders->tp;
  const bool split = job_.parallelism.sequence_parallel || job_.software.scatter_gather_p2p;
  Bytes all{}, largest{};
  for (const MicroBatch* mb : micro_batches_of(replica, wave)) {
    const Bytes bytes = encoder_costs_->boundary(leaving, *mb);
    all += bytes;
    largest = std::max(largest, bytes);
  }
  const Bytes per_gpu = split ? scaled(largest, 1.0 / tp) : largest;
  const int lanes = job_.parallelism.tensor_model_parallel_size / tp;
  const double used = static_cast<double>(wave.micro_batches.size()) / lanes;
  auto links = p2p_links(replica, from, to);
  for (LinkUse& use : links) use.bytes = scaled(Bytes{use.bytes.value * per_gpu.value}, used);

  Task task;
  task.duration = p2p_time(from, to, per_gpu);
  task.bytes = all;
  task.transfer = program_.add_transfer(links);
  task.micro_batch = static_cast<std::int32_t>(wave.micro_batches.front());
  task.label = program_.label(forward ? "encoder activations" : "encoder gradients");
  task.kind = TaskKind::pp_send;
  task.stream = Program::stream(device(replica, from), forward ? StreamKind::encoder_send_next
                                                               : StreamKind::encoder_send_prev);
  const TaskId sent = program_.add(task);
  task.kind = TaskKind::pp_recv;
  task.stream = Program::stream(
      device(replica, to), forward ? StreamKind::encoder_recv_prev : StreamKind::encoder_recv_next);
  return {sent, program_.add(task)};
}

void Lowering::add_encoder_transfers(int replica) {
  const EncoderPlan& plan = *plan_.encoders;
  const Model& model = job_.model;
  const Layer to_llm = plan.stages.back().back().layer;
  // `before` on one rank lets `after` start on another.
  const auto join = [&](TaskId before, int from, TaskId after, int to, bool forward,
                        std::uint32_t wave, const Layer& leaving) {
    if (from == to) return program_.add_dependency(before, after);
    const auto [sent, received] = send_wave(replica, from, to, forward, wave, leaving);
    program_.add_dependency(before, sent);
    program_.add_dependency(received, after);
  };
  for (std::uint32_t w = 0; w < plan.waves.size(); ++w) {
    const EncoderWave& wave = plan.waves[w];
    for (int s = 0; s + 1 < plan.pp; ++s) {
      const int from = plan.rank_of(wave.group, s), to = plan.rank_of(wave.group, s + 1);
      join(encoder_tasks(replica, from, w, true).last, from,
           encoder_tasks(replica, to, w, true).first, to, true, w,
           plan.stages[static_cast<std::size_t>(s)].back().layer);
    }
    add_llm_transfer(replica, w, to_llm);
    for (int s = plan.pp - 1; s > 0 && backward_reaches(model, plan, s - 1); --s) {
      const int from = plan.rank_of(wave.group, s), to = plan.rank_of(wave.group, s - 1);
      join(encoder_tasks(replica, from, w, false).last, from,
           encoder_tasks(replica, to, w, false).first, to, false, w,
           plan.stages[static_cast<std::size_t>(s - 1)].back().layer);
    }
  }
}

// Between the last encoder stage of a wave and the LLM's first stage.
void Lowering::add_llm_transfer(int replica, std::uint32_t w, const Layer& leaving) {
  const EncoderPlan& plan = *plan_.encoders;
  const EncoderWave& wave = plan.waves[w];
  const int last = plan.rank_of(wave.group, plan.pp - 1);
  TaskId before = encoder_tasks(replica, last, w, true).last;
  if (last != 0) {
    const auto [sent, received] = send_wave(replica, last, 0, true, w, leaving);
    program_.add_dependency(before, sent);
    before = received;
  }
  for (std::uint32_t i : wave.micro_batches)
    program_.add_dependency(before, tasks_of(replica, 0, {true, i, 0}).first());

  if (!backward_reaches(job_.model, plan, plan.pp - 1)) return;
  TaskId after = encoder_tasks(replica, last, w, false).first;
  if (last != 0) {
    const auto [sent, received] = send_wave(replica, 0, last, false, w, leaving);
    program_.add_dependency(received, after);
    after = sent;
  }
  for (std::uint32_t i : wave.micro_batches)
    program_.add_dependency(tasks_of(replica, 0, {false, i, 0}).last(), after);
}

// One collective of a stage's parameters or gradients over all encoder pipelines; a task on each
// simulated device that holds the stage, ordered by replica and group.
void Lowering::add_encoder_collective(costs::CollectiveOp op, int bytes_per_parameter) {
  const EncoderPlan& plan = *plan_.encoders;
  const Parallelism& p = job_.parallelism;
  const Parallelism own = encoder_parallelism(job_, plan);
  if (own.data_parallel_size == 1) return;
  const int lanes = p.tensor_model_parallel_size / plan.tp;
  for (int s = 0; s < plan.pp; ++s) {
    std::vector<std::vector<int>> groups(static_cast<std::size_t>(plan.tp));
    std::vector<int> holders;
    for (int g = 0; g < plan.groups(ranks()); ++g) {
      holders.push_back(plan.rank_of(static_cast<std::uint32_t>(g), s));
      for (int dp = 0; dp < p.data_parallel_size; ++dp)
        for (int lane = 0; lane < lanes; ++lane)
          for (int t = 0; t < plan.tp; ++t)
            groups[static_cast<std::size_t>(t)].push_back(
                p.rank(lane * plan.tp + t, dp, holders.back()));
    }
    const bool gather = op == costs::CollectiveOp::all_gather;
    std::vector<EncoderBucket> buckets = encoder_buckets(job_, plan, s);
    if (!gather) std::reverse(buckets.begin(), buckets.end());
    for (const EncoderBucket& bucket : buckets) {
      if (bucket.parameters == 0) continue;
      for (TaskId task :
           add_collective(groups, holders, op, bucket.parameters * bytes_per_parameter)) {
        const StreamId stream = program_.tasks()[task.value].stream;
        const EncoderDevice& e = encoders_[Program::device_of(stream).value];
        for (std::uint32_t layer = bucket.from; layer < bucket.to; ++layer) {
          if (gather && e.first_forward[layer])
            program_.add_dependency(task, e.first_forward[layer]);
          if (!gather && e.last_backward[layer])
            program_.add_dependency(e.last_backward[layer], task);
        }
      }
    }
  }
}

}  // namespace mllmsim::lower
