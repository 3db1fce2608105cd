#include "strategies/lower/optimizer.hpp"

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/data_parallel.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {
namespace {

// Parameters of a rank that one GPU updates, or those whose gradients it holds between backwards:
// its share if the states of the optimizer, or gradients, are sharded.
std::int64_t parameters_of_gpu(const StepBuilder& step, int rank, int sharded_from_stage) {
  const Job& job = step.job();
  const auto share = [&](std::int64_t n, int dp) {
    return job.parallelism.zero_stage >= sharded_from_stage ? (n + dp - 1) / dp : n;
  };
  const RankParameters trained = trained_on_rank(step, rank);
  std::int64_t n = share(trained.dense, job.parallelism.shard_ranks());
  if (trained.experts > 0) n += share(trained.experts, job.parallelism.expert_data_ranks());
  if (const auto& encoders = step.plan().encoders)
    n += share(encoder_parameters_per_gpu(job, *encoders, rank, true),
               encoder_parallelism(job, *encoders).data_parallel_size);
  return n;
}

// Weights of quantised products that one GPU of a rank holds.
std::int64_t quantised(const StepBuilder& step, int rank) {
  std::int64_t n = 0;
  for (const Chunk& chunk : step.plan().stages[static_cast<std::size_t>(rank)])
    for (const PlannedLayer& layer : chunk)
      if (is_quantised(step.job(), layer)) n += parameters_per_gpu(step.job(), layer, false);
  return n;
}

// The step of parameters whose states lie in the CPU's memory, one thing after another, as
// Megatron's HybridDeviceOptimizer does it unless told to overlap: gradients to the CPU, Adam at
// the pace of the CPU's memory, new parameters back. (Their gradients' norm, taken on the GPU, is
// left out: a hundredth of that.)
Time host_step(const Job& job, std::int64_t parameters) {
  const Precision& p = job.software.precision;
  const double over_link = p.grad_bytes_per_parameter + p.parameter_bytes;
  const double in_memory =
      p.grad_bytes_per_parameter + 2 * p.optimizer_bytes_per_parameter + p.parameter_bytes;
  return to_time(Seconds{static_cast<double>(parameters) *
                         (over_link / job.cluster.host_link_bandwidth.value +
                          in_memory / job.cluster.host_memory_bandwidth.value)});
}

}  // namespace

void add_optimizer(StepBuilder& step, const CostContext& costs,
                   const std::vector<TaskId>& encoders_done) {
  const int gpus = step.job().parallelism.world_size();
  const costs::GroupShape all{gpus, step.job().cluster.domain_of(gpus - 1) + 1, 1};
  constexpr Bytes kNorm{kFp32};
  Program& program = step.program();
  Task sync;
  const bool meet = step.job().software.clip_grad;
  if (gpus > 1)
    sync.duration =
        to_time(costs.kernels.collective({costs::CollectiveOp::all_reduce, kNorm, all}).time);
  sync.kind = TaskKind::sync;
  sync.label = program.label("gradient norm");
  sync.transfer = program.add_transfer();
  for (int replica = 0; replica < step.replicas(); ++replica)
    for (int rank = 0; rank < step.ranks(); ++rank) {
      const DeviceId device = step.device(replica, rank);
      sync.stream = Program::stream(device, StreamKind::dp);
      Task alone = sync;  // without a norm a rank updates as soon as its own gradients are there
      alone.duration = {};
      alone.transfer = Task{}.transfer;
      const TaskId met = program.add(meet ? sync : alone);
      for (std::uint32_t c = 0; c < step.chunks(); ++c)
        program.add_dependency(
            step.tasks_of(replica, rank, {false, step.micro_batches() - 1, c}).last(), met);
      if (const TaskId done = encoders_done[device.value]) program.add_dependency(done, met);
      const std::int64_t all_updated = parameters_of_gpu(step, rank, 1);
      const auto on_host = static_cast<std::int64_t>(
          static_cast<double>(all_updated) * step.job().software.optimizer_offload_fraction);
      const std::int64_t parameters = all_updated - on_host;
      Task update;
      const std::int64_t held = parameters_of_gpu(step, rank, 2);
      if (held > 0) update.duration = costs.layers.optimizer_step(parameters, held);
      update.kind = TaskKind::optimizer;
      update.label = program.label("optimizer");
      update.stream = Program::stream(device, StreamKind::compute);
      program.add_dependency(met, program.add(update));
      if (on_host > 0) {
        Task host = update;
        host.duration = host_step(step.job(), on_host);
        host.label = program.label("optimizer on the CPU");
        program.add(host);
      }
      Task quantise = update;
      quantise.duration = costs.layers.quantise_weights(quantised(step, rank));
      quantise.label = program.label("quantise weights");
      if (quantise.duration > Time{}) program.add(quantise);
    }
}

}  // namespace mllmsim::lower
