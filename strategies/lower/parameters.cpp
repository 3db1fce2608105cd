#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {

std::int64_t parameters_per_gpu(const Job& job, const PlannedLayer& planned, bool only_trained) {
  const int tp = job.parallelism.tensor_model_parallel_size;
  return only_trained ? trained_parameters_per_rank(job.model, planned.layer, tp)
                      : parameters_per_rank(job.model, planned.layer, tp);
}

std::int64_t parameters_per_gpu(const Job& job, const Chunk& chunk, bool only_trained) {
  std::int64_t n = 0;
  for (const PlannedLayer& planned : chunk) n += parameters_per_gpu(job, planned, only_trained);
  return n;
}

bool scatters_gradients(const Job& job) {
  return job.parallelism.zero_stage == 1 && job.software.reduce_scatter_grads;
}

}  // namespace mllmsim::lower
