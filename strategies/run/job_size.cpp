#include "strategies/run/job_size.hpp"

#include <algorithm>

#include "sim/world/model.hpp"

namespace mllmsim {
namespace {

// Of a transformer layer in one pass, roughly: GEMMs, attention, norms, activations, residuals.
constexpr double kKernelsPerLayer = 16;

}  // namespace

JobSize size_of(const Job& job) {
  const Parallelism& p = job.parallelism;
  const double chunks = static_cast<double>(p.pipeline_model_parallel_size) *
                        static_cast<double>(p.virtual_pipeline_stages);
  JobSize size;
  size.tasks = 2 * chunks * static_cast<double>(p.micro_batches());
  if (job.data.set) {
    const double all = std::max(1.0, job.data.samples / static_cast<double>(p.global_batch_size));
    size.steps = job.data.steps > 0 ? std::min(all, static_cast<double>(job.data.steps)) : all;
    size.tasks *= static_cast<double>(p.data_parallel_size);
  }
  if (job.granularity == Granularity::kernel && !job.given_times)
    size.tasks *=
        std::max(1.0, kKernelsPerLayer * static_cast<double>(layers_of(job.model).size()) / chunks);
  return size;
}

}  // namespace mllmsim
