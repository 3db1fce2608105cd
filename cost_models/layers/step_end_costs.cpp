// What a rank does with its parameters and gradients outside of the layers' passes.
#include <algorithm>

#include "cost_models/layers/layer_costs.hpp"
#include "cost_models/layers/layer_kernels.hpp"
#include "sim/world/rank_parameters.hpp"

namespace mllmsim::costs {

Parallelism LayerCosts::known_by(Parallelism p, const Software& software) {
  std::int64_t micro_batches = p.micro_batches();
  if (software.grad_accumulation_bytes_per_parameter == 0)
    micro_batches = 1;
  else if (!software.grads_start_empty)
    micro_batches = std::min<std::int64_t>(micro_batches, 2);
  p.micro_batch_size = 1;
  p.global_batch_size = micro_batches * p.data_parallel_size;
  return p;
}

// With sharded parameters only a share is left after the reduce-scatter.
bool LayerCosts::accumulates_gradients(const LayerSetting& s) const {
  return (s.trained || s.adapters) && parallelism_.zero_stage < 3 &&
         parallelism_.micro_batches() > 1 && software_.grad_accumulation_bytes_per_parameter > 0;
}

TimedKernel LayerCosts::gradient_accumulation(const Layer& layer) const {
  const std::int64_t parameters = trained_rank_parameters(model_, layer, parallelism_).all();
  Bytes bytes{parameters * software_.grad_accumulation_bytes_per_parameter};
  // What the first micro-batch does not do, spread over all.
  const auto all = static_cast<double>(parallelism_.micro_batches());
  if (software_.grads_start_empty) bytes = scaled(bytes, (all - 1) / all);
  const Cost cost = kernels_.memory_bound({MemoryOp::elementwise, bytes});
  return {"gradient accumulation", false, to_time(cost.time), {}, cost.source};
}

Time LayerCosts::tp_gather(Bytes bytes) const {
  return to_time(kernels_.collective({CollectiveOp::all_gather, bytes, tp_group_}).time);
}

Time LayerCosts::quantise_weights(std::int64_t parameters) const {
  const Precision& precision = software_.precision;
  const NumberFormat format = precision.format;
  if (!is_quantised(format) || parallelism_.zero_stage == 3 || parameters == 0) return {};
  const int passes = needs_amax_pass(format, precision.fp8_current_scaling) ? 2 : 1;
  // Parameters that are gathered quantised only need their copy by columns.
  const double read = precision.fp8_param_gather ? bytes_of(format) : passes * kHalf;
  const double written = (precision.fp8_param_gather ? 1 : 2) * bytes_of(format);
  return to_time(
      kernels_.memory_bound({quantising(format), scaled(Bytes{parameters}, read + written)}).time);
}

Time LayerCosts::optimizer_step(std::int64_t parameters, std::int64_t held) const {
  const Precision& precision = software_.precision;
  const std::int64_t gradient = precision.grad_bytes_per_parameter;
  const std::int64_t state = precision.optimizer_bytes_per_parameter;
  // Master weights into parameters; without them, the parameters themselves.
  const std::int64_t weights =
      precision.format == NumberFormat::fp32 ? 2 * kFp32 : kFp32 + precision.parameter_bytes;
  const std::int64_t updated = (software_.clip_grad ? 3 * gradient : 0)  // norm, clip
                               + gradient                                // Adam: read the gradient,
                               + 2 * state  //   update master weights and moments
                               + weights;
  const bool zeroed = !software_.grads_start_empty, whole = parallelism_.zero_stage <= 1;
  const int passes =
      (zeroed ? 1 : 0) +
      (whole && parallelism_.gradient_ranks() > 1 ? software_.grad_reduce_passes : 0);
  const bool copied = software_.copy_gathered_parameters && parallelism_.zero_stage == 1;
  const std::int64_t all = passes * gradient + (copied ? 2 * precision.parameter_bytes : 0);
  const Bytes bytes{parameters * updated + held * all};
  return to_time(kernels_.memory_bound({MemoryOp::optimizer, bytes}).time);
}

}  // namespace mllmsim::costs
