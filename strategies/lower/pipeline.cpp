// Activations forward and their gradients backward between neighbouring model stages.
//
// A send and its receive are the two sides of one transfer. With overlap_p2p receives are posted
// early, so a transfer starts when its sender is ready, and computation goes on meanwhile.
// Otherwise passes and exchanges take turns, as in Megatron before mid-2023 and DeepSpeed: after
// each pass (after each pair of forward and backward of interleaved 1F1B) a rank sends what it
// made, receives what its next turn needs, and waits for both; so neighbours wait for each other.
// Megatron's rank placement decides which links a transfer crosses.
#include <algorithm>

#include "sim/base/errors.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim::lower {

void Lowering::add_pipeline(int replica, int rank) {
  if (ranks() == 1) return;
  for (const Pass& pass : schedules_[static_cast<std::size_t>(rank)]) send(replica, rank, pass);
}

void Lowering::take_turns(int replica, int rank) {
  const std::vector<Pass>& passes = schedules_[static_cast<std::size_t>(rank)];
  const std::vector<std::size_t> turns = turns_of(rank);
  for (std::size_t t = 0; t + 1 < turns.size(); ++t)
    for (std::size_t i = turns[t]; i < turns[t + 1]; ++i) {
      PassTasks& tasks = tasks_of(replica, rank, passes[i]);
      tasks.turn_first = tasks_of(replica, rank, passes[turns[t]]).first();
      tasks.turn_last = tasks_of(replica, rank, passes[turns[t + 1] - 1]).last();
      if (t > 0) tasks.turn_before = tasks_of(replica, rank, passes[turns[t] - 1]).last();
      if (turns[t + 1] < passes.size())
        tasks.turn_after = tasks_of(replica, rank, passes[turns[t + 1]]).first();
    }
}

// Passes of the rank by turn: the index of each turn's first pass, and the number of passes.
std::vector<std::size_t> Lowering::turns_of(int rank) const {
  const std::vector<Pass>& passes = schedules_[static_cast<std::size_t>(rank)];
  const auto warmup = static_cast<std::size_t>(std::ranges::find(passes, false, &Pass::forward) -
                                               passes.begin() - 1);
  const bool pairs = chunks() > 1 && 2 * (warmup + 1) < passes.size();
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < passes.size(); ++i)
    if (!pairs || i <= warmup || passes[i].forward || !passes[i - 1].forward) turns.push_back(i);
  turns.push_back(passes.size());
  return turns;
}

std::optional<int> Lowering::stage_before(int rank, const Pass& pass) const {
  return stage_after(rank, {!pass.forward, pass.micro_batch, pass.chunk});
}

std::optional<int> Lowering::stage_after(int rank, const Pass& pass) const {
  const int here = static_cast<int>(pass.chunk) * ranks() + rank;
  const int to = here + (pass.forward ? 1 : -1);
  if (ranks() == 1 || to < 0 || to >= ranks() * chunks()) return std::nullopt;
  return to;
}

// What passes between two neighbouring model stages, of all tp ranks; 0 if it is a gradient that
// nothing needs.
Bytes Lowering::boundary(int from_stage, int to_stage, const MicroBatch& mb) const {
  const int before = std::min(from_stage, to_stage), after = std::max(from_stage, to_stage);
  const auto at = [&](int stage) -> const Chunk& {
    return chunk(stage % ranks(), stage / ranks());
  };
  const bool forward = to_stage > from_stage;
  if (!forward && !needs_input_gradient(job_.model, at(after).front().layer)) return {};
  return costs_->layers.boundary(at(before).back().layer, mb);
}

void Lowering::send(int replica, int rank, const Pass& pass) {
  const auto to = stage_after(rank, pass);
  if (!to) return;
  const int from = static_cast<int>(pass.chunk) * ranks() + rank;
  const int to_rank = *to % ranks(), to_chunk = *to / ranks();

  Time time{};
  Bytes bytes{};
  std::vector<LinkUse> links;
  if (job_.given_times) {
    time = to_time(job_.given_times->p2p);
  } else {
    const auto& mb = plan_.micro_batches[static_cast<std::size_t>(replica)][pass.micro_batch];
    bytes = boundary(from, *to, mb);
    if (bytes.value == 0 && !pass.forward) return;
    const int tp = job_.parallelism.tensor_model_parallel_size;
    const bool split = job_.parallelism.sequence_parallel || job_.software.scatter_gather_p2p;
    const Bytes per_gpu = split ? scaled(bytes, 1.0 / tp) : bytes;
    time = p2p_time(rank, to_rank, per_gpu);
    links = p2p_links(replica, rank, to_rank);
    for (LinkUse& use : links) use.bytes = Bytes{use.bytes.value * per_gpu.value};
  }

  Task task;
  task.duration = time;
  task.bytes = bytes;
  task.transfer = program_.add_transfer(links);
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  task.label = program_.label(pass.forward ? "activations" : "gradients");
  task.kind = TaskKind::pp_send;
  task.stream = Program::stream(device(replica, rank),
                                pass.forward ? StreamKind::pp_send_next : StreamKind::pp_send_prev);
  const TaskId sent = program_.add(task);
  task.kind = TaskKind::pp_recv;
  task.chunk = static_cast<std::int16_t>(to_chunk);
  task.stream = Program::stream(device(replica, to_rank),
                                pass.forward ? StreamKind::pp_recv_prev : StreamKind::pp_recv_next);
  const TaskId received = program_.add(task);
  const Pass consumer{pass.forward, pass.micro_batch, static_cast<std::uint32_t>(to_chunk)};
  const PassTasks& from_tasks = tasks_of(replica, rank, pass);
  const PassTasks& to_tasks = tasks_of(replica, to_rank, consumer);
  program_.add_dependency(from_tasks.turn_last ? from_tasks.turn_last : from_tasks.last(), sent);
  program_.add_dependency(received, to_tasks.turn_first ? to_tasks.turn_first : to_tasks.first());
  if (to_tasks.turn_before) program_.add_dependency(to_tasks.turn_before, received);
  if (from_tasks.turn_after) program_.add_dependency(sent, from_tasks.turn_after);
}

Time Lowering::p2p_time(int from_rank, int to_rank, Bytes bytes_per_gpu) const {
  const Parallelism& p = job_.parallelism;
  const ClusterSpec& cluster = job_.cluster;
  const bool same_node =
      cluster.domain_of(p.rank(0, 0, from_rank)) == cluster.domain_of(p.rank(0, 0, to_rank));
  // Others on the same NIC are not part of this time: the simulation shares links.
  return to_time(costs_->kernels.point_to_point({bytes_per_gpu, same_node, 1}).time);
}

const std::vector<LinkUse>& Lowering::p2p_links(int replica, int from_rank, int to_rank) {
  std::vector<LinkUse>& links = p2p_links_[{device(replica, from_rank).value, to_rank}];
  if (!links.empty()) return links;
  const Parallelism& p = job_.parallelism;
  std::vector<std::pair<int, int>> pairs;
  for (int r : replicas_behind(replica))
    for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
      pairs.emplace_back(p.rank(tp, r, from_rank), p.rank(tp, r, to_rank));
  links = seen_by(replica, costs_->network.messages(pairs, Bytes{1}));
  return links;
}

}  // namespace mllmsim::lower
