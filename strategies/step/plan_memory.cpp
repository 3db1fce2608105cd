#include "strategies/step/plan_memory.hpp"

#include <algorithm>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/lower.hpp"

namespace mllmsim::step {

RankState rank_state(const Job& job, const Plan& plan, int rank) {
  const Parallelism& p = job.parallelism;
  RankState out;
  std::int64_t trained = 0;
  for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)]) {
    out.parameters += lower::parameters_per_gpu(job, chunk, false);
    trained += lower::parameters_per_gpu(job, chunk, true);
  }
  out.state =
      model_state(out.parameters, trained, p.data_parallel_size, p.zero_stage, job.software);
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
