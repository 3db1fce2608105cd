#include "strategies/lower/pipeline.hpp"
#include "cost_models/layers/layer_costs.hpp"

#include <algorithm>
#include <optional>

namespace mllmsim::lower {
namespace {

// Where a pass stands between transfers: the last task of the turn before its own, the first and
// last of its own, the first of the turn after.
struct Turn {
  TaskId before, first, last, after;
};

// By StepBuilder::index_of.
std::vector<Turn> take_turns(const StepBuilder& step) {
  std::vector<Turn> out(step.passes());
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank) {
      const std::vector<Pass>& passes = step.schedule(rank);
      const std::vector<std::size_t> turns = turns_of(passes, step.chunks());
      const auto tasks = [&](std::size_t i) -> const PassTasks& {
        return step.tasks_of(replica, rank, passes[i]);
      };
      for (std::size_t t = 0; t + 1 < turns.size(); ++t) {
        Turn turn{{}, tasks(turns[t]).first(), tasks(turns[t + 1] - 1).last(), {}};
        if (t > 0) turn.before = tasks(turns[t] - 1).last();
        if (turns[t + 1] < passes.size()) turn.after = tasks(turns[t + 1]).first();
        for (std::size_t i = turns[t]; i < turns[t + 1]; ++i)
          out[step.index_of(replica, rank, passes[i])] = turn;
      }
    }
  return out;
}

// `turns`: empty if a pass waits only for what it needs.
// `message_of(replica, rank, pass, to_stage)`: what the pass sends there; nothing: no transfer.
template <class MessageOf>
void add_transfers(StepBuilder& step, const std::vector<Turn>& turns, const MessageOf& message_of) {
  Program& program = step.program();
  const auto turn_of = [&](int replica, int rank, const Pass& pass) -> Turn {
    if (!turns.empty()) return turns[step.index_of(replica, rank, pass)];
    const PassTasks& tasks = step.tasks_of(replica, rank, pass);
    return {{}, tasks.first(), tasks.last(), {}};
  };
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank)
      for (const Pass& pass : step.schedule(rank)) {
        const std::optional<int> to = step.stage_after(rank, pass);
        if (!to) continue;
        const std::optional<Message> message = message_of(replica, rank, pass, *to);
        if (!message) continue;
        const int to_rank = *to % step.ranks();
        const Pass consumer{pass.forward, pass.micro_batch,
                            static_cast<std::uint32_t>(*to / step.ranks())};
        const std::uint32_t label = step.label(pass.forward ? "activations" : "gradients", "");
        const auto [sent, received] = step.add_transfer(
            *message,
            step.task_of(pass, step.device(replica, rank),
                         pass.forward ? StreamKind::pp_send_next : StreamKind::pp_send_prev,
                         TaskKind::pp_send, label),
            step.task_of(consumer, step.device(replica, to_rank),
                         pass.forward ? StreamKind::pp_recv_prev : StreamKind::pp_recv_next,
                         TaskKind::pp_recv, label));
        const Turn from_turn = turn_of(replica, rank, pass);
        const Turn to_turn = turn_of(replica, to_rank, consumer);
        program.add_dependency(from_turn.last, sent);
        program.add_dependency(received, to_turn.first);
        if (to_turn.before) program.add_dependency(to_turn.before, received);
        if (from_turn.after) program.add_dependency(sent, from_turn.after);
      }
}

}  // namespace

std::vector<std::size_t> turns_of(const std::vector<Pass>& passes, std::uint32_t chunks) {
  const auto warmup = static_cast<std::size_t>(std::ranges::find(passes, false, &Pass::forward) -
                                               passes.begin() - 1);
  const bool pairs = chunks > 1 && 2 * (warmup + 1) < passes.size();
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < passes.size(); ++i)
    if (!pairs || i <= warmup || passes[i].forward || !passes[i - 1].forward) turns.push_back(i);
  turns.push_back(passes.size());
  return turns;
}

Bytes boundary(StepBuilder& step, const costs::LayerCosts& layers, int from_stage, int to_stage,
               int replica, std::uint32_t micro_batch) {
  std::optional<Bytes>& known = step.boundary(from_stage, to_stage, replica, micro_batch);
  if (known) return *known;
  const Chunk& before = step.layers_of_stage(std::min(from_stage, to_stage));
  const Chunk& after = step.layers_of_stage(std::max(from_stage, to_stage));
  const bool needed =
      to_stage > from_stage || needs_input_gradient(step.job().model, after.front().layer);
  known = needed ? layers.boundary(before.back().layer, step.micro_batch(replica, micro_batch))
                 : Bytes{};
  return *known;
}

void add_given_pipeline(StepBuilder& step, const GivenTimes& times) {
  if (step.ranks() == 1) return;
  const Message message{to_time(times.p2p), {}, {}};
  add_transfers(step, {}, [&](int, int, const Pass&, int) { return std::optional(message); });
}

void add_pipeline(StepBuilder& step, costs::LayerCosts& layers, Communication& communication) {
  if (step.ranks() == 1) return;
  const Parallelism& p = step.job().parallelism;
  const Software& software = step.job().software;
  add_transfers(step, software.overlap_p2p ? std::vector<Turn>{} : take_turns(step),
                [&](int replica, int rank, const Pass& pass, int to) -> std::optional<Message> {
                  const Bytes bytes =
                      boundary(step, layers, step.stage(rank, pass), to, replica, pass.micro_batch);
                  if (bytes.value == 0 && !pass.forward) return std::nullopt;
                  const int before = std::min(step.stage(rank, pass), to);
                  const bool split =
                      p.sequence_parallel
                          ? layers.sequence_parallel(step.layers_of_stage(before).back().layer)
                          : software.scatter_gather_p2p;
                  Message message = communication.message(
                      replica, rank, to % step.ranks(),
                      split ? scaled(bytes, 1.0 / p.tensor_model_parallel_size) : bytes);
                  message.bytes = bytes;
                  return message;
                });
}

}  // namespace mllmsim::lower
