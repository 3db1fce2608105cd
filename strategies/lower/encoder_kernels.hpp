// The kernels of an encoder wave on one rank, as lowering issues them and schedulers place them.
//
// The lanes of a wave hold different micro-batches and wait for each other at every layer: a layer
// costs what the slowest lane's does.
#pragma once

#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/kernel/kernel_groups.hpp"
#include "strategies/job/encoder_plan.hpp"
#include "strategies/job/job.hpp"
#include "strategies/lower/buckets.hpp"

namespace mllmsim::lower {

struct EncoderKernel {
  costs::TimedKernel kernel;
  TaskKind kind = TaskKind::forward;
  std::int64_t memory_at_start = 0, memory_at_end = 0;
  std::uint32_t layer = 0;  // in its stage
};

// A layer of a wave that has kernels, with the memory they take when the first starts and give back
// when the last ends.
struct EncoderLayer {
  const costs::LayerCost* cost = nullptr;  // until further costs are computed; none: nothing to do
  std::uint32_t layer = 0;                 // in its stage
  MemoryDeltas memory;
};
// In the order they run; at least one.
std::vector<EncoderLayer> encoder_layers(costs::LayerCosts& costs, const Chunk& stage,
                                         const std::vector<const MicroBatch*>& wave, bool forward);

// All their kernels in a list.
std::vector<EncoderKernel> encoder_kernels(costs::LayerCosts& costs, const Chunk& stage,
                                           const std::vector<const MicroBatch*>& wave,
                                           bool forward);

// The encoders' own parallel sizes: dp counts every lane of every group of every LLM pipeline.
Parallelism encoder_parallelism(const Job& job, const EncoderPlan& plan);

// What their layers cost.
costs::LayerCosts encoder_layer_costs(const Job& job, const EncoderPlan& plan,
                                      const costs::KernelCosts& kernels);

// Whether gradients have to reach an encoder stage: something in it or before it is trained.
bool backward_reaches(const Model& model, const EncoderPlan& plan, int stage);

// Of a stage's layers, in the order of forwards.
std::vector<Bucket> encoder_buckets(const Job& job, const EncoderPlan& plan, int stage);

// What one GPU of a rank holds of the encoders.
std::int64_t encoder_parameters_per_gpu(const Job& job, const EncoderPlan& plan, int rank,
                                        bool only_trained);

}  // namespace mllmsim::lower
