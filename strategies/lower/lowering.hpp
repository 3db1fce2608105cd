// The state that the parts of lowering share. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/lower/plan_costs.hpp"

namespace mllmsim::lower {

// The tasks of one layer (or of a whole chunk) in one pass.
struct Segment {
  TaskId first, last;
  PlannedLayer layer;  // meaningless if the segment is a whole chunk
};

struct PassTasks {
  std::vector<Segment> segments;
  TaskId start{};  // what comes before the first layer; may be nothing
  // Where passes and transfers take turns: the last task of the turn before, the first and last of
  // this pass's turn, the first of the turn after.
  TaskId turn_before{}, turn_first{}, turn_last{}, turn_after{};
  TaskId first() const { return start ? start : segments.front().first; }
  TaskId last() const { return segments.back().last; }
};

// A pass of the encoders whose kernels are being issued.
struct OpenEncoderPass {
  std::vector<EncoderKernel> kernels;
  std::size_t issued = 0, slots_left = 0;
};

// The encoders on one device.
struct EncoderDevice {
  std::vector<OpenEncoderPass> open;  // by pass of its rank
  std::size_t next_slot = 0;
  std::vector<Segment> tasks;  // by wave and direction
  TaskId last;
  std::vector<TaskId> first_forward, last_backward;  // by layer of its stage
};

class Lowering {
 public:
  // Both costs are null if times are given.
  Lowering(const Job& job, const Plan& plan, const CostContext* costs, const PlanCosts* plan_costs);
  Program run();
  std::vector<std::vector<PassSpan>> pass_spans();  // of replica 0, after run()

 private:
  int ranks() const { return static_cast<int>(plan_.stages.size()); }
  int chunks() const { return static_cast<int>(plan_.stages.front().size()); }
  int replicas() const { return static_cast<int>(plan_.micro_batches.size()); }
  int micro_batches(int replica) const {
    return static_cast<int>(plan_.micro_batches[static_cast<std::size_t>(replica)].size());
  }
  DeviceId device(int replica, int rank) const {
    return {static_cast<std::uint32_t>(replica * ranks() + rank)};
  }
  const Chunk& chunk(int rank, int index) const {
    return plan_.stages[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
  }
  PassTasks& tasks_of(int replica, int rank, const Pass& pass);
  // Real ranks behind a device: all its tp ranks, of this replica or (if it stands for all) of
  // every replica.
  std::vector<int> replicas_behind(int replica) const;

  // passes.cpp: compute and tp tasks in schedule order.
  void add_passes(int replica, int rank);
  PassTasks add_pass(DeviceId device, int rank, const Pass& pass, const MicroBatch& micro_batch);
  bool by_layer(int rank, const Pass& pass) const;
  PassTasks add_given_pass(DeviceId device, int rank, const Pass& pass);
  Segment add_chunk(DeviceId device, const Chunk& chunk, const Pass& pass);
  Segment add_layer(DeviceId device, const PlannedLayer& layer, const Pass& pass);
  Segment add_compute(DeviceId device, const Pass& pass, const ChunkCost& cost,
                      std::uint32_t label);
  Segment add_kernels(DeviceId device, const PlannedLayer& layer, const Pass& pass,
                      const MicroBatch& mb);
  TaskId add_start(DeviceId device, int rank, const Pass& pass, const MicroBatch& mb);
  std::uint32_t chunk_label(const Chunk& chunk);

  // pipeline.cpp: activations and gradients between stages.
  void add_pipeline(int replica, int rank);
  void take_turns(int replica, int rank);
  std::vector<std::size_t> turns_of(int rank) const;
  void send(int replica, int rank, const Pass& pass);
  // The model stage a pass's input comes from or its output goes to; nothing at the ends.
  std::optional<int> stage_before(int rank, const Pass& pass) const;
  std::optional<int> stage_after(int rank, const Pass& pass) const;
  Bytes boundary(int from_stage, int to_stage, const MicroBatch& mb) const;
  Time p2p_time(int from_rank, int to_rank, Bytes bytes_per_gpu) const;
  const std::vector<LinkUse>& p2p_links(int replica, int from_rank, int to_rank);

  // encoder.cpp: encoders beside the LLM's pipeline.
  void prepare_encoders();
  std::vector<const MicroBatch*> micro_batches_of(int replica, const EncoderWave& wave) const;
  Segment& encoder_tasks(int replica, int rank, std::uint32_t wave, bool forward);
  void issue_encoders(int replica, int rank, std::uint32_t llm_pass, std::uint32_t llm_kernel);
  void issue_slot(int replica, int rank, const EncoderSlot& slot);
  void issue_kernel(int replica, int rank, const EncoderPass& pass, const EncoderKernel& kernel,
                    bool tp_bubble);
  std::pair<TaskId, TaskId> send_wave(int replica, int from, int to, bool forward,
                                      std::uint32_t wave, const Layer& leaving);
  void add_encoder_transfers(int replica);
  void add_llm_transfer(int replica, std::uint32_t wave, const Layer& leaving);
  void add_encoder_collective(costs::CollectiveOp op, int bytes_per_parameter);

  // data_parallel.cpp: parameters, gradients, optimizer.
  void add_data_parallel();
  void add_llm_data_parallel();
  void add_parameter_gathers(int rank);
  void add_gradient_reductions(int rank);
  bool in_buckets(int rank, int chunk) const;
  std::vector<std::pair<std::size_t, std::size_t>> buckets(const PassTasks& pass) const;
  void add_optimizer();
  std::int64_t parameters_of(int rank, bool only_trained) const;
  std::vector<TaskId> add_collective(int rank, costs::CollectiveOp op, std::int64_t bytes);
  std::vector<TaskId> add_collective(const std::vector<std::vector<int>>& groups,
                                     const std::vector<int>& ranks, costs::CollectiveOp op,
                                     std::int64_t bytes);
  std::vector<LinkUse> ring_links(const std::vector<std::vector<int>>& groups, Bytes bytes);
  // sharded.cpp: zero_stage 3.
  void add_sharded_layers();
  void slow_beside_shards(DeviceId device, const Pass& pass, Segment& segment);
  Time shard_time(costs::CollectiveOp op, std::int64_t bytes);

  // Keeps what the simulated replica's own nodes see; the others are its mirror images.
  std::vector<LinkUse> seen_by(int replica, std::vector<LinkUse> uses) const;

  const Job& job_;
  const Plan& plan_;
  const CostContext* costs_;
  const PlanCosts* plan_costs_;
  Program program_;
  std::vector<std::vector<Pass>> schedules_;  // by rank
  std::vector<PassTasks> passes_;             // by replica, rank, micro-batch, chunk, direction
  int max_micro_batches_ = 0;
  std::vector<TaskId> last_kernel_;  // by device, while passes are added
  // By device and rank it sends to; bytes of a 1-byte message.
  std::map<std::pair<std::uint32_t, int>, std::vector<LinkUse>> p2p_links_;
  // By number of groups and members of the first; bytes of a 1-TiB collective.
  std::map<std::pair<std::size_t, std::vector<int>>, std::vector<LinkUse>> ring_links_;

  std::map<std::pair<costs::CollectiveOp, std::int64_t>, Time> shard_times_;  // by bytes

  Granularity granularity_ = Granularity::stage;
  // Where the LLM's kernels being added stand, for the encoders' slots.
  int at_replica_ = 0, at_rank_ = 0;
  std::uint32_t at_pass_ = 0, at_kernel_ = 0;
  std::optional<costs::LayerCosts> encoder_costs_;
  std::vector<EncoderDevice> encoders_;  // by device
};

}  // namespace mllmsim::lower
