// Activations forward and their gradients backward between neighbouring model stages.
//
// A send and its receive are the two sides of one transfer. Receives are posted early, so a
// transfer starts when its sender is ready; computation goes on meanwhile unless the framework
// waits for its sends (overlap_p2p = false). Megatron's rank placement decides which links it
// crosses.
#include <algorithm>

#include "sim/errors.hpp"
#include "strategies/lower/lowering.hpp"

namespace mllmsim {

void Lowering::add_pipeline(int replica, int rank) {
  if (ranks() == 1) return;
  const std::vector<Pass>& passes = schedules_[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < passes.size(); ++i)
    send(replica, rank, passes[i], i + 1 < passes.size() ? &passes[i + 1] : nullptr);
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

void Lowering::send(int replica, int rank, const Pass& pass, const Pass* next) {
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
  program_.add_dependency(tasks_of(replica, rank, pass).last(), sent);
  const Pass consumer{pass.forward, pass.micro_batch, static_cast<std::uint32_t>(to_chunk)};
  program_.add_dependency(received, tasks_of(replica, to_rank, consumer).first());
  if (next && !job_.given_times && !job_.software.overlap_p2p)
    program_.add_dependency(sent, tasks_of(replica, rank, *next).first());
}

Time Lowering::p2p_time(int from_rank, int to_rank, Bytes bytes_per_gpu) const {
  const Parallelism& p = job_.parallelism;
  const ClusterSpec& cluster = job_.cluster;
  const bool same_node =
      cluster.node_of(p.rank(0, 0, from_rank)) == cluster.node_of(p.rank(0, 0, to_rank));
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

}  // namespace mllmsim
