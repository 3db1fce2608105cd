// Work and bytes are neither lost nor made: what tasks do and send is what the plan's layers cost
// and hand on, counted another way.
#include <numeric>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/parameters.hpp"
#include "strategies/lower/tied_embedding.hpp"
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

bool works(const Program& program, const Task& task) {
  const StreamKind stream = Program::kind_of(task.stream);
  if (stream != StreamKind::compute && stream != StreamKind::tp) return false;
  if (task.kind == TaskKind::host || task.kind == TaskKind::optimizer) return false;
  const std::string& label = program.text(task.label);  // these are no kernels of layers
  return label != "start of a pass" && label != "slowed by dp collectives" &&
         label != "llm tp collective beside an encoder" &&
         label != "llm beside a collective of an encoder" && label != "gradients into buckets" &&
         !label.ends_with(" input");  // gathered before a pass
}

// Kernels of the LLM's pipeline (or of all layers, where encoders are part of it) on each device.
TEST(EveryStrategy, RunsEveryLayerOfEveryMicroBatchForAsLongAsItCosts) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const Plan& plan = planned.plan;
    const SimulatedStep step = planned.simulate();
    const std::size_t ranks = plan.stages.size();
    std::vector<Time> costs(step.program.devices()), tasks(costs.size());
    for (std::size_t d = 0; d < costs.size(); ++d)
      for (const Chunk& chunk : plan.stages[d % ranks])
        for (const PlannedLayer& p : chunk)
          for (const MicroBatch& mb : plan.micro_batches[d / ranks]) {
            const LayerTotals t = planned.costs.layers.total(p.layer, mb, p.recompute);
            costs[d] += t.forward.time + t.recompute.time + t.backward.time;
          }
    for (const Task& task : step.program.tasks())
      if (works(step.program, task) && task.chunk >= 0)
        tasks[Program::device_of(task.stream).value] += task.duration;
    if (planned.job.software.overlap_moe_expert_parallel_comm)  // beside another pass's kernels
      for (std::size_t d = 0; d < costs.size(); ++d) RC_ASSERT(tasks[d] <= costs[d]);
    else
      RC_ASSERT(tasks == costs);
  });
}

// Encoders beside the pipeline: a wave takes as long as its slowest lane, and a kernel in a tp
// bubble at most `slowdown` times as long as alone.
TEST(EveryStrategy, RunsEncodersBesideThePipelineForAsLongAsTheyCost) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    if (!planned.plan.encoders) return;
    const EncoderPlan& encoders = *planned.plan.encoders;
    LayerCosts layers(planned.job.model, encoder_parallelism(planned.job, encoders),
                      planned.job.software, *planned.costs.kernels, planned.job.cluster);
    const SimulatedStep step = planned.simulate();
    const std::size_t ranks = planned.plan.stages.size();
    std::vector<Time> alone(step.program.devices()), tasks(alone.size());
    std::int64_t kernels = 0;
    for (std::size_t d = 0; d < alone.size(); ++d)
      for (const EncoderPass& pass : encoders.ranks[d % ranks].passes) {
        std::vector<const MicroBatch*> wave;
        for (const std::uint32_t i : encoders.waves[pass.wave].micro_batches)
          wave.push_back(&planned.plan.micro_batches[d / ranks][i]);
        for (const EncoderKernel& k : encoder_kernels(
                 layers, encoders.stage_of(static_cast<int>(d % ranks)), wave, pass.forward)) {
          alone[d] += k.kernel.time;
          ++kernels;
        }
      }
    for (const Task& task : step.program.tasks())
      if (works(step.program, task) && task.chunk < 0)
        tasks[Program::device_of(task.stream).value] += task.duration;
    const double slowdown = planned.costs.kernels->gemm_slowdown_beside_collective();
    for (std::size_t d = 0; d < alone.size(); ++d) {
      RC_ASSERT(tasks[d] >= alone[d]);
      RC_ASSERT(tasks[d] <= scaled(alone[d], slowdown) + Time{kernels});
    }
  });
}

TEST(EveryStrategy, ReceivesWhatIsSentWhileItIsSent) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const SimulatedStep step = planned.simulate();
    std::vector<std::int64_t> sent(step.program.transfers().size()), received(sent.size());
    for (const Task& task : step.program.tasks()) {
      if (task.kind == TaskKind::pp_send) sent[task.transfer.value] += task.bytes.value;
      if (task.kind == TaskKind::pp_recv) received[task.transfer.value] += task.bytes.value;
    }
    RC_ASSERT(sent == received);
  });
}

// Activations cross every boundary between stages once per micro-batch, gradients come back where
// something before it is trained.
TEST(EveryStrategy, SendsActivationsAndGradientsOverEveryBoundaryOnce) {
  hold_for_every_strategy([](const std::string& strategy) {
    PlannedJob planned(random_job(strategy));
    const Plan& plan = planned.plan;
    const std::size_t ranks = plan.stages.size();
    const std::size_t stages = ranks * plan.stages.front().size();
    const auto layers = [&](std::size_t stage) -> const Chunk& {
      return plan.stages[stage % ranks][stage / ranks];
    };
    std::int64_t expected = 0, sent = 0;
    if (ranks > 1)
      for (const auto& replica : plan.micro_batches)
        for (const MicroBatch& mb : replica)
          for (std::size_t s = 0; s + 1 < stages; ++s) {
            const std::int64_t bytes =
                planned.costs.layers.boundary(layers(s).back().layer, mb).value;
            const bool back = needs_input_gradient(planned.job.model, layers(s + 1).front().layer);
            expected += back ? 2 * bytes : bytes;
          }
    const Program program = planned.simulate().program;
    for (const Task& task : program.tasks())
      if (task.kind == TaskKind::pp_send && task.chunk >= 0) sent += task.bytes.value;
    RC_ASSERT(sent == expected);
  });
}

// What a GPU holds of trained parameters, and of all.
struct Held {
  std::int64_t trained = 0, all = 0;
};

// The stages that hold the embedding and a copy of it, and add up their gradients.
struct TiedEnds {
  TiedEnds(const Job& job, const Plan& plan) {
    if (!job.model.llm.trained) return;
    for (std::size_t rank = 0; rank < plan.stages.size(); ++rank)
      if (const std::int64_t copy = copied_embedding(job, plan.stages[rank])) {
        last = static_cast<int>(rank);
        parameters = static_cast<double>(copy);
      }
    for (std::size_t rank = 0; rank < plan.stages.size(); ++rank)
      for (const Chunk& chunk : plan.stages[rank])
        for (const PlannedLayer& p : chunk)
          if (p.layer.kind == LayerKind::embedding && is_llm(job.model, p.layer))
            first = static_cast<int>(rank);
  }
  bool contains(int rank) const { return last >= 0 && (rank == first || rank == last); }

  int first = -1, last = -1;
  double parameters = 0;
};

// Of n GPUs that hold the same b bytes each sends (n - 1) / n * b to gather or to scatter them, and
// twice that to reduce them for all. Every collective rounds to whole bytes.
// A tied head on a stage of its own has a copy of the embedding.
TEST(EveryStrategy, SendsParametersAndGradientsAsItsZeroStageSays) {
  hold_for_every_strategy([](const std::string& strategy) {
    Job random = random_job(strategy);
    random.software.zero3_max_reuse_distance = 0;  // recomputed layers are gathered once
    PlannedJob planned(random);
    const Job& job = planned.job;
    const Plan& plan = planned.plan;
    const int zero = job.parallelism.zero_stage;
    const Precision& precision = job.software.precision;
    const Parallelism& p = job.parallelism;
    const auto all_but_own = [](int ranks) { return static_cast<double>(ranks - 1) / ranks; };
    // n ranks hold the same; of zero_stage 3 `shards` do, in copies.
    const auto expected = [&](const Held& held, int n, int shards, TaskKind kind) {
      const double once = all_but_own(n);
      const auto micro_batches = static_cast<double>(plan.micro_batches.front().size());
      const auto all = static_cast<double>(held.all), trained = static_cast<double>(held.trained);
      if (kind == TaskKind::dp_all_gather) {
        if (zero != 3) return zero > 0 ? once * precision.parameter_bytes * trained : 0;
        // Forwards gather from all that share a copy; backwards too, from neighbours, or not.
        double gathered = all_but_own(shards);
        if (p.reshard_after_forward)
          gathered +=
              all_but_own(p.zero_hpz_partition_size > 1 ? p.zero_hpz_partition_size : shards);
        return gathered * precision.parameter_bytes * all * micro_batches;
      }
      const double sharded = precision.sharded_grad_bytes_per_parameter * trained * micro_batches;
      if (zero == 3)  // scattered to those that share a copy, then reduced between copies
        return sharded *
               (all_but_own(shards) + 2 * all_but_own(p.data_parallel_replicate_degree) / shards);
      const bool scatter = zero > 0 && job.software.reduce_scatter_grads;
      return (scatter ? 1 : 2) * once *
             (zero == 2 ? sharded : precision.grad_bytes_per_parameter * trained);
    };
    const TiedEnds tied(job, plan);
    const Program program = planned.simulate().program;
    for (std::uint32_t d = 0; d < program.devices(); ++d) {
      const int rank = static_cast<int>(d % plan.stages.size());
      Held own, experts, encoders;  // experts that are on ranks of their own
      for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)]) {
        const RankParameters all = parameters_of(job, chunk, false);
        const RankParameters trained = parameters_of(job, chunk, true);
        own.all += all.dense;
        own.trained += trained.dense;
        experts.all += all.experts;
        experts.trained += trained.experts;
      }
      const std::int64_t copied =
          copied_embedding(job, plan.stages[static_cast<std::size_t>(rank)]);
      own.all += copied;
      if (job.model.llm.trained) own.trained += copied;
      if (plan.encoders)
        encoders = {encoder_parameters_per_gpu(job, *plan.encoders, rank, true),
                    encoder_parameters_per_gpu(job, *plan.encoders, rank, false)};
      for (const TaskKind kind : {TaskKind::dp_all_gather, TaskKind::dp_reduce_scatter}) {
        double bytes = expected(own, p.gradient_ranks(), p.shard_ranks(), kind) +
                       expected(experts, p.expert_data_ranks(), p.expert_data_ranks(), kind);
        if (plan.encoders)
          bytes += expected(encoders, encoder_parallelism(job, *plan.encoders).data_parallel_size,
                            p.shard_ranks(), kind);
        if (kind == TaskKind::dp_reduce_scatter && tied.contains(rank))
          bytes += 2 * all_but_own(2) * precision.grad_bytes_per_parameter * tied.parameters;
        double sent = 0, rounding = 1;
        for (const Task& task : program.tasks())
          if (task.kind == kind && Program::device_of(task.stream).value == d) {
            sent += static_cast<double>(task.bytes.value);
            ++rounding;
          }
        RC_ASSERT(std::abs(sent - bytes) <= 2 * rounding);
      }
    }
  });
}

}  // namespace
}  // namespace mllmsim
