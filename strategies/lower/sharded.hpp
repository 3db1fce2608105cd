// zero_stage 3: every GPU holds 1/dp of each layer. Each pass gathers a layer's parameters just
// before its use and backwards scatter its gradients, all replicas together, for every micro-batch.
//
// With data_parallel_replicate_degree the groups are parts of the replicas (HSDP): shards are
// gathered and scattered inside a part, and the scattered gradients then all-reduced between parts.
// Without reshard_after_forward a layer's parameters stay from its forward to its backward. With
// zero_hpz_partition_size backwards gather among so many neighbours (ZeRO++).
//
// The gather of a layer may start when the layer zero3_prefetch_layers + 1 before it is done, which
// bounds how many gathered layers are in memory. Gathers and scatters of a device share its dp
// stream, in the order they are issued. They take SMs from the layers beside them.
#pragma once

#include <map>
#include <tuple>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/rank_parameters.hpp"
#include "strategies/lower/communication.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

class ShardedLayers {
 public:
  ShardedLayers(StepBuilder& step, const CostContext& costs, Communication& communication)
      : step_(step), costs_(costs), communication_(communication) {}

  // A layer runs beside the gather of a neighbour's parameters, backwards beside the scatter of its
  // gradients as well; neighbours are taken to be alike. While those last it computes at
  // 1 / slowdown of its speed. Adds what that costs as a task at the end of the layer's.
  void slow_beside_collectives(DeviceId device, const Pass& pass, Segment& segment);

  // zero3_copies: parameters into and out of what is gathered, gradients into what is scattered.
  void copy_buffers(DeviceId device, const Pass& pass, Segment& segment);

  // Gathers and scatters of all layers, once the passes are there.
  void add_collectives();

 private:
  bool gathers(bool backward) const {
    return !backward || step_.job().parallelism.reshard_after_forward;
  }
  Communication::Among gathered_among(bool backward) const {
    return backward && step_.job().parallelism.zero_hpz_partition_size > 1
               ? Communication::Among::neighbours
               : Communication::Among::shards;
  }
  // Experts on ranks of their own are sharded over those that have the same.
  bool shards_experts(const RankParameters& n) const {
    return n.experts > 0 && step_.job().parallelism.expert_data_ranks() > 1;
  }
  // A task at the end of a layer's.
  void lengthen(DeviceId device, const Pass& pass, Segment& segment, const char* by, Time duration);
  Time time_of(Communication::Among among, costs::CollectiveOp op, std::int64_t bytes);

  StepBuilder& step_;
  const CostContext& costs_;
  Communication& communication_;
  std::map<std::tuple<Communication::Among, costs::CollectiveOp, std::int64_t>, Time> times_;
};

}  // namespace mllmsim::lower
