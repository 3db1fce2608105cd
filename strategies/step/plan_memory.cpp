#include "strategies/step/plan_memory.hpp"

#include <algorithm>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/lower.hpp"

namespace mllmsim::step {

namespace {

// What weights of quantised products take beside their bf16 ones, by rows and by columns; less
// those, if only quantised ones are kept. Sharded parameters are quantised when they are gathered,
// and a second copy of theirs may be kept between neighbours.
Bytes quantised_copies(const Job& job, const Plan& plan, int rank) {
  const Parallelism& p = job.parallelism;
  const Precision& precision = job.software.precision;
  std::int64_t quantised = 0, all = 0;
  for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)])
    for (const PlannedLayer& layer : chunk) {
      const std::int64_t n = lower::parameters_per_gpu(job, layer, false);
      all += n;
      if (lower::is_quantised(job, layer)) quantised += n;
    }
  const double format = bytes_of(precision.format);
  if (p.zero_stage < 3) {
    const double bf16 = precision.fp8_param_gather ? precision.parameter_bytes : 0;
    return scaled(Bytes{quantised}, 2 * format - bf16);
  }
  Bytes extra{};
  if (precision.fp8_param_gather)
    extra += scaled(Bytes{quantised}, (format - precision.parameter_bytes) / p.shard_ranks());
  if (p.zero_hpz_partition_size > 1)
    extra += Bytes{all * precision.parameter_bytes / p.zero_hpz_partition_size};
  return extra;
}

}  // namespace

RankState rank_state(const Job& job, const Plan& plan, int rank) {
  const Parallelism& p = job.parallelism;
  RankState out;
  std::int64_t trained = 0;
  for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)]) {
    out.parameters += lower::parameters_per_gpu(job, chunk, false);
    trained += lower::parameters_per_gpu(job, chunk, true);
  }
  out.state = model_state(out.parameters, trained, p.shard_ranks(), p.zero_stage, job.software);
  out.state.weights += quantised_copies(job, plan, rank);
  if (!plan.encoders) return out;
  const std::int64_t n = lower::encoder_parameters_per_gpu(job, *plan.encoders, rank, false);
  const ModelState encoders =
      model_state(n, lower::encoder_parameters_per_gpu(job, *plan.encoders, rank, true),
                  lower::encoder_parallelism(job, *plan.encoders).data_parallel_size, p.zero_stage,
                  job.software);
  out.parameters += n;
  out.state.weights += encoders.weights;
  out.state.gradients += encoders.gradients;
  out.state.optimizer += encoders.optimizer;
  return out;
}

Bytes peak_memory(const Job& job, const Plan& plan,
                  const std::vector<std::vector<MemoryPoint>>& profile) {
  const auto ranks = plan.stages.size();
  Bytes most{};
  for (std::size_t d = 0; d < profile.size(); ++d)
    most = std::max(most, rank_state(job, plan, static_cast<int>(d % ranks)).state.total() +
                              peak(profile[d]) + job.software.memory_reserve);
  return most;
}

}  // namespace mllmsim::step
