#include "strategies/lower/encoder_collectives.hpp"

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "strategies/lower/parameters.hpp"

namespace mllmsim::lower {
namespace {

// The GPUs that hold one encoder stage.
struct Holders {
  std::vector<int> ranks;                // of the LLM's pipeline
  std::vector<std::vector<int>> groups;  // one per tp rank of the encoders, all replicas and lanes
};

Holders holders_of(const StepBuilder& step, int stage) {
  const EncoderPlan& plan = *step.plan().encoders;
  const Parallelism& p = step.job().parallelism;
  const int lanes = p.tensor_model_parallel_size / plan.tp;
  Holders out;
  out.groups.resize(static_cast<std::size_t>(plan.tp));
  for (int g = 0; g < plan.groups(step.ranks()); ++g) {
    const int rank = plan.rank_of(static_cast<std::uint32_t>(g), stage);
    out.ranks.push_back(rank);
    for (int dp = 0; dp < p.data_parallel_size; ++dp)
      for (int lane = 0; lane < lanes; ++lane)
        for (int t = 0; t < plan.tp; ++t)
          out.groups[static_cast<std::size_t>(t)].push_back(p.rank(lane * plan.tp + t, dp, rank));
  }
  return out;
}

// `join(collective, device, layer)` for each layer of a bucket and each device that holds it.
template <class Join>
void add_collectives(StepBuilder& step, Communication& communication, costs::CollectiveOp op,
                     int bytes_per_parameter, const Join& join) {
  const EncoderPlan& plan = *step.plan().encoders;
  if (encoder_parallelism(step.job(), plan).data_parallel_size == 1) return;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const Holders holders = holders_of(step, stage);
    std::vector<Bucket> buckets = encoder_buckets(step.job(), plan, stage);
    if (op != costs::CollectiveOp::all_gather) std::reverse(buckets.begin(), buckets.end());
    for (const Bucket& bucket : buckets) {
      if (bucket.parameters == 0) continue;
      for (TaskId task : communication.add_collective(holders.groups, holders.ranks, op,
                                                      bucket.parameters * bytes_per_parameter)) {
        const DeviceId device = Program::device_of(step.program().tasks()[task.value].stream);
        for (std::uint32_t layer = bucket.from; layer < bucket.to; ++layer)
          join(task, device, layer);
      }
    }
  }
}

}  // namespace

void gather_encoder_parameters(StepBuilder& step, Communication& communication,
                               const EncoderPasses& encoders) {
  if (step.job().parallelism.zero_stage != 1) return;
  add_collectives(step, communication, costs::CollectiveOp::all_gather,
                  step.job().software.precision.parameter_bytes,
                  [&](TaskId gather, DeviceId device, std::uint32_t layer) {
                    if (const TaskId first = encoders.first_forwards(device)[layer])
                      step.program().add_dependency(gather, first);
                  });
}

void reduce_encoder_gradients(StepBuilder& step, Communication& communication,
                              const EncoderPasses& encoders) {
  const bool scatter = scatters_gradients(step.job());
  add_collectives(step, communication,
                  scatter ? costs::CollectiveOp::reduce_scatter : costs::CollectiveOp::all_reduce,
                  step.job().software.precision.grad_bytes_per_parameter,
                  [&](TaskId reduction, DeviceId device, std::uint32_t layer) {
                    if (const TaskId last = encoders.last_backwards(device)[layer])
                      step.program().add_dependency(last, reduction);
                  });
}

}  // namespace mllmsim::lower
