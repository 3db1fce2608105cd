#include "strategies/lower/data_parallel.hpp"

#include <functional>

#include "cost_models/kernels/kernel_costs.hpp"
#include "strategies/lower/buckets.hpp"
#include "strategies/lower/parameters.hpp"
#include "strategies/lower/tied_embedding.hpp"

namespace mllmsim::lower {
namespace {

// The copy of a tied embedding that is trained on this rank.
std::int64_t tied_copy(const StepBuilder& step, int rank) {
  return step.job().model.llm.trained
             ? copied_embedding(step.job(), step.plan().stages[static_cast<std::size_t>(rank)])
             : 0;
}

// What one rank gathers and reduces. A task of a pass is named by a function of its tasks, since
// each replica has its own.
class RankCollectives {
 public:
  RankCollectives(StepBuilder& step, Communication& communication, int rank)
      : step_(step), communication_(communication), job_(step.job()), rank_(rank) {}

  void gather_parameters() {
    if (!job_.software.overlap_param_gather)
      return gather(gathered_bytes(step_.plan().stages[static_cast<std::size_t>(rank_)]),
                    {true, 0, 0}, &PassTasks::first);
    for (std::uint32_t c = 0; c < step_.chunks(); ++c) {
      const Pass pass{true, 0, c};
      if (!in_buckets(job_.parallelism, rank_, c)) {
        gather(gathered_bytes({step_.chunk(rank_, c)}), pass, &PassTasks::first);
        continue;
      }
      for (const Bucket& bucket : buckets_of(pass))
        gather(gathered_bytes(pass, bucket), pass,
               [&](const PassTasks& tasks) { return tasks.segments[bucket.from].first; });
    }
  }

  void reduce_gradients() {
    const std::uint32_t last = step_.micro_batches() - 1;
    if (job_.parallelism.zero_stage == 2) reduce_earlier_gradients(last);
    if (!job_.software.overlap_grad_reduce)
      return void(reduce(trained_on_rank(step_, rank_), {false, last, 0}, &PassTasks::last));
    for (std::uint32_t c = step_.chunks(); c-- > 0;) {  // backwards leave the last chunk first
      const Pass pass{false, last, c};
      if (!in_buckets(job_.parallelism, rank_, c)) {
        reduce(trained_in_chunk(c), pass, &PassTasks::last);
        continue;
      }
      for (const Bucket& bucket : buckets_of(pass))
        reduce(trained_in_bucket(pass, bucket), pass,
               [&](const PassTasks& tasks) { return tasks.segments[bucket.to - 1].last; });
    }
  }

 private:
  // zero_stage 2: of all micro-batches but the last, in the order of their backwards.
  void reduce_earlier_gradients(std::uint32_t last) {
    const std::vector<Pass>& schedule = step_.schedule(rank_);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Pass& pass = schedule[i];
      if (pass.forward || pass.micro_batch == last) continue;
      const std::vector<TaskId> tasks =
          reduce(trained_in_chunk(pass.chunk), pass, &PassTasks::last);
      if (tasks.empty() || job_.software.overlap_grad_reduce || i + 1 == schedule.size()) continue;
      for (int r = 0; r < step_.replicas(); ++r)
        step_.program().add_dependency(tasks[static_cast<std::size_t>(r)],
                                       step_.tasks_of(r, rank_, schedule[i + 1]).first());
    }
  }

  RankParameters trained_in_chunk(std::uint32_t c) const {
    const Chunk& chunk = step_.chunk(rank_, c);
    const bool head = !chunk.empty() && chunk.back().layer.kind == LayerKind::head;
    RankParameters n = parameters_of(job_, chunk, true);
    n.dense += head ? tied_copy(step_, rank_) : 0;
    return n;
  }
  RankParameters trained_in_bucket(const Pass& pass, const Bucket& bucket) const {
    RankParameters n;
    const auto& segments = step_.tasks_of(0, rank_, pass).segments;
    for (std::uint32_t i = bucket.from; i < bucket.to; ++i) n += trained_in(segments[i]);
    return n;
  }
  RankParameters trained_in(const Segment& segment) const {
    RankParameters n = parameters_of(job_, segment.layer, true);
    n.dense += segment.layer.layer.kind == LayerKind::head ? tied_copy(step_, rank_) : 0;
    return n;
  }

  // Of the pass's layers, in the order it runs them.
  std::vector<Bucket> buckets_of(const Pass& pass) const {
    std::vector<std::int64_t> parameters;
    for (const Segment& segment : step_.tasks_of(0, rank_, pass).segments)
      parameters.push_back(trained_in(segment).all());
    return buckets(parameters, job_.software.bucket_parameters(job_.parallelism.gradient_ranks()));
  }

  // What all GPUs have in the end of these layers' trained parameters.
  RankParameters gathered_bytes(const std::vector<Chunk>& chunks) const {
    RankParameters bytes;
    for (const Chunk& chunk : chunks)
      for (const PlannedLayer& layer : chunk) bytes += gathered_bytes(layer);
    return bytes;
  }
  RankParameters gathered_bytes(const Pass& pass, const Bucket& bucket) const {
    RankParameters bytes;
    const auto& segments = step_.tasks_of(0, rank_, pass).segments;
    for (std::uint32_t i = bucket.from; i < bucket.to; ++i)
      bytes += gathered_bytes(segments[i].layer);
    return bytes;
  }
  RankParameters gathered_bytes(const PlannedLayer& layer) const {
    const bool head = layer.layer.kind == LayerKind::head;
    RankParameters bytes = gathered_layer_bytes(job_, layer, true);
    bytes.dense += head ? job_.software.precision.parameter_bytes * tied_copy(step_, rank_) : 0;
    return bytes;
  }

  // Over the ranks that share them: experts among those that hold the same.
  template <class Use>
  void over_ranks(costs::CollectiveOp op, const RankParameters& bytes, const Use& use) {
    const Parallelism& p = job_.parallelism;
    if (bytes.dense > 0 && p.gradient_ranks() > 1)
      use(communication_.add_collective(rank_, op, bytes.dense));
    if (bytes.experts > 0 && p.expert_data_ranks() > 1)
      use(communication_.add_collective(rank_, Communication::Among::experts, op, bytes.experts));
  }

  template <class TaskOf>
  void gather(const RankParameters& bytes, const Pass& pass, const TaskOf& first_use) {
    over_ranks(costs::CollectiveOp::all_gather, bytes, [&](const std::vector<TaskId>& tasks) {
      for (int r = 0; r < step_.replicas(); ++r)
        step_.program().add_dependency(tasks[static_cast<std::size_t>(r)],
                                       std::invoke(first_use, step_.tasks_of(r, rank_, pass)));
    });
  }

  // The last tasks of it, one per replica.
  template <class TaskOf>
  std::vector<TaskId> reduce(const RankParameters& parameters, const Pass& pass,
                             const TaskOf& last_use) {
    const bool sharded = job_.parallelism.zero_stage == 2;
    const Precision& precision = job_.software.precision;
    // Where a copy is reduced, it has the precision of the copy.
    const int copied = job_.software.memory.reduce_copy_bytes_per_parameter;
    const std::int64_t each = sharded      ? precision.sharded_grad_bytes_per_parameter
                              : copied > 0 ? copied
                                           : precision.grad_bytes_per_parameter;
    std::vector<TaskId> last;
    over_ranks(scatters_gradients(job_) ? costs::CollectiveOp::reduce_scatter
                                        : costs::CollectiveOp::all_reduce,
               {each * parameters.dense, each * parameters.experts},
               [&](const std::vector<TaskId>& tasks) {
                 for (int r = 0; r < step_.replicas(); ++r)
                   step_.program().add_dependency(
                       std::invoke(last_use, step_.tasks_of(r, rank_, pass)),
                       tasks[static_cast<std::size_t>(r)]);
                 last = tasks;
               });
    return last;
  }

  StepBuilder& step_;
  Communication& communication_;
  const Job& job_;
  int rank_;
};

}  // namespace

RankParameters trained_on_rank(const StepBuilder& step, int rank) {
  RankParameters n;
  for (const Chunk& chunk : step.plan().stages[static_cast<std::size_t>(rank)])
    n += parameters_of(step.job(), chunk, true);
  n.dense += tied_copy(step, rank);
  return n;
}

void add_data_parallel(StepBuilder& step, Communication& communication) {
  const Parallelism& p = step.job().parallelism;
  if (p.gradient_ranks() == 1 && (!p.experts_apart() || p.expert_data_ranks() == 1)) return;
  for (int rank = 0; rank < step.ranks(); ++rank) {
    RankCollectives of_rank(step, communication, rank);
    if (p.zero_stage >= 1) of_rank.gather_parameters();
    of_rank.reduce_gradients();
  }
}

}  // namespace mllmsim::lower
