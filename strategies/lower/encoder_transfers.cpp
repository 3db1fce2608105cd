#include "strategies/lower/encoder_transfers.hpp"

#include <algorithm>

namespace mllmsim::lower {
namespace {

class WaveTransfers {
 public:
  WaveTransfers(StepBuilder& step, Communication& communication, const EncoderPasses& encoders,
                int replica, std::uint32_t wave)
      : step_(step),
        communication_(communication),
        encoders_(encoders),
        plan_(*step.plan().encoders),
        wave_(plan_.waves[wave]),
        replica_(replica),
        index_(wave) {}

  void add() {
    for (int s = 0; s + 1 < plan_.pp; ++s)
      join(tasks(s, true).last, rank(s), tasks(s + 1, true).first, rank(s + 1), true, leaving(s));
    to_llm();
    if (!backward_reaches(step_.job().model, plan_, plan_.pp - 1)) return;
    from_llm();
    for (int s = plan_.pp - 1; s > 0 && backward_reaches(step_.job().model, plan_, s - 1); --s)
      join(tasks(s, false).last, rank(s), tasks(s - 1, false).first, rank(s - 1), false,
           leaving(s - 1));
  }

 private:
  int rank(int stage) const { return plan_.rank_of(wave_.group, stage); }
  const WaveTasks& tasks(int stage, bool forward) const {
    return encoders_.tasks_of(replica_, rank(stage), index_, forward);
  }
  // What a stage's last layer hands on, and gets the gradients of.
  const Layer& leaving(int stage) const {
    return plan_.stages[static_cast<std::size_t>(stage)].back().layer;
  }

  // `before` on one rank lets `after` start on another.
  void join(TaskId before, int from, TaskId after, int to, bool forward, const Layer& layer) {
    if (from == to) return step_.program().add_dependency(before, after);
    const auto [sent, received] = send(from, to, forward, layer);
    step_.program().add_dependency(before, sent);
    step_.program().add_dependency(received, after);
  }

  void to_llm() {
    const int last = rank(plan_.pp - 1);
    TaskId before = tasks(plan_.pp - 1, true).last;
    if (last != 0) {
      const auto [sent, received] = send(last, 0, true, leaving(plan_.pp - 1));
      step_.program().add_dependency(before, sent);
      before = received;
    }
    for (std::uint32_t i : wave_.micro_batches)
      step_.program().add_dependency(before, step_.tasks_of(replica_, 0, {true, i, 0}).first());
  }

  void from_llm() {
    const int last = rank(plan_.pp - 1);
    TaskId after = tasks(plan_.pp - 1, false).first;
    if (last != 0) {
      const auto [sent, received] = send(0, last, false, leaving(plan_.pp - 1));
      step_.program().add_dependency(received, after);
      after = sent;
    }
    for (std::uint32_t i : wave_.micro_batches)
      step_.program().add_dependency(step_.tasks_of(replica_, 0, {false, i, 0}).last(), after);
  }

  // One message of every lane of the wave at once.
  StepBuilder::Transfer send(int from, int to, bool forward, const Layer& layer) {
    const Job& job = step_.job();
    Bytes all{}, largest{};
    for (const MicroBatch* mb : encoders_.micro_batches_of(replica_, wave_)) {
      const Bytes bytes = encoders_.layer_costs().boundary(layer, *mb);
      all += bytes;
      largest = std::max(largest, bytes);
    }
    const bool split = job.parallelism.sequence_parallel || job.software.scatter_gather_p2p;
    Message message = communication_.message(replica_, from, to,
                                             split ? scaled(largest, 1.0 / plan_.tp) : largest);
    message.bytes = all;
    const int lanes = job.parallelism.tensor_model_parallel_size / plan_.tp;
    const double used = static_cast<double>(wave_.micro_batches.size()) / lanes;
    message.factor *= used;

    Task sender;
    sender.micro_batch = static_cast<std::int32_t>(wave_.micro_batches.front());
    sender.label = step_.label(forward ? "encoder activations" : "encoder gradients", "");
    Task receiver = sender;
    sender.stream =
        Program::stream(step_.device(replica_, from),
                        forward ? StreamKind::encoder_send_next : StreamKind::encoder_send_prev);
    receiver.stream =
        Program::stream(step_.device(replica_, to),
                        forward ? StreamKind::encoder_recv_prev : StreamKind::encoder_recv_next);
    return step_.add_transfer(message, sender, receiver);
  }

  StepBuilder& step_;
  Communication& communication_;
  const EncoderPasses& encoders_;
  const EncoderPlan& plan_;
  const EncoderWave& wave_;
  int replica_;
  std::uint32_t index_;
};

}  // namespace

void add_encoder_transfers(StepBuilder& step, Communication& communication,
                           const EncoderPasses& encoders) {
  const auto waves = static_cast<std::uint32_t>(step.plan().encoders->waves.size());
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (std::uint32_t wave = 0; wave < waves; ++wave)
      WaveTransfers(step, communication, encoders, replica, wave).add();
}

}  // namespace mllmsim::lower
