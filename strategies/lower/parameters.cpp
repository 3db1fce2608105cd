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

bool is_quantised(const Job& job, const PlannedLayer& planned) {
  return planned.layer.kind == LayerKind::block && is_llm(job.model, planned.layer) &&
         mllmsim::is_quantised(job.software.precision.format);
}

std::int64_t gathered_layer_bytes(const Job& job, const PlannedLayer& planned, bool only_trained) {
  const Precision& precision = job.software.precision;
  const std::int64_t n = parameters_per_gpu(job, planned, only_trained);
  if (precision.fp8_param_gather && is_quantised(job, planned))
    return scaled(Bytes{n}, bytes_of(precision.format)).value;
  return precision.parameter_bytes * n;
}

bool scatters_gradients(const Job& job) {
  const int stage = job.parallelism.zero_stage;
  return stage >= 1 && stage <= 2 && job.software.reduce_scatter_grads;
}

}  // namespace mllmsim::lower
